"""Tags of a job, in SageMaker's form and as a dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from hpo.record.acts import acted
from hpo.record.tables import JOBS, encode
from trainers.errors import ConfigurationError


def tags_from(given: object) -> list[dict[str, str]] | None:
    """Tags in SageMaker's form, as it takes them: a list of keys with their values, or a dict.

    Raises:
        ConfigurationError: they are something else, or a key is there twice.
    """
    if given is None:
        return None
    listed = [{"Key": key, "Value": value} for key, value in given.items()] if isinstance(given, Mapping) else given
    if not isinstance(listed, list):
        raise _wrong(given)
    for tag in listed:
        if not isinstance(tag, Mapping) or set(tag) != {"Key", "Value"}:
            raise _wrong(tag)
        if not all(isinstance(text, str) for text in tag.values()) or not tag["Key"]:
            raise _wrong(tag)
    keys = [tag["Key"] for tag in listed]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigurationError(f"tags have the key {key!r} {keys.count(key)} times; give each once")
    return [dict(tag) for tag in listed]


def tags_of(recorded: Any) -> dict[str, str]:
    """Tags of a record as a dict; older versions of Warmband recorded whatever a list held."""
    tags = [tag if isinstance(tag, Mapping) else {"Key": tag} for tag in recorded or ()]
    return {str(tag.get("Key", "")): str(tag.get("Value", "")) for tag in tags}


def retag(
    connection: sa.Connection,
    clock: sa.ColumnElement[float],
    name: str,
    change: Callable[[dict[str, str]], dict[str, str]],
) -> dict[str, str]:
    """Changes the tags of a job, whose writer reads none and may go on.

    Args:
        connection: with a transaction that has begun.
        clock: the database's.
        name: the job's.
        change: from its tags to those that it is to have; what it raises leaves the record as it is.

    Returns:
        The tags that it has.
    """
    job = JOBS.c.name == name
    connection.execute(sa.update(JOBS).where(job).values(name=name))  # Who changes some as well, waits.
    spec = connection.execute(sa.select(JOBS.c.spec).where(job)).scalar_one()
    found = change(tags_of(spec.get("tags")))
    tags = [{"Key": key, "Value": value} for key, value in found.items()]
    connection.execute(sa.update(JOBS).where(job).values(spec=encode({**spec, "tags": tags})))
    acted(connection, clock, name, "tagged", {"tags": found})
    return found


def _wrong(given: object) -> ConfigurationError:
    return ConfigurationError(
        f"tags hold {given!r}; give texts by name, such as {{'team': 'churn'}}, or [{{'Key': 'team', 'Value': "
        "'churn'}]"
    )
