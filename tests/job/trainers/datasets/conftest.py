"""A machine without data, and homes of files to download."""

from tests.support.fixtures.trainers_datasets import nowhere  # noqa: F401
