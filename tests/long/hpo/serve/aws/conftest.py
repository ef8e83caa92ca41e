"""A server with a record, and botocore's own clients of it."""

from tests.support.fixtures.hpo_serve_aws import client, endpoint, key, keys  # noqa: F401
