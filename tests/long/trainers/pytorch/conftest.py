"""Three processes that train together, without Ray."""

from tests.support.fixtures.trainers_pytorch import gang  # noqa: F401
