"""Requests, checked against the service's model, with the service's own words for what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hpo.serve.aws.errors import ServiceError, invalid
from hpo.serve.aws.wire.models import pattern

_OWN_TABLES = ("TrainingInstanceType",)
"""Shapes whose words are those of a table that users extend, and not of the model alone."""

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "structure": (Mapping,),
    "map": (Mapping,),
    "list": (list,),
}


def checked(shape: Any, value: Any) -> dict[str, Any]:
    """A request as its shape has it: times are datetimes in UTC, and nulls are left out.

    Args:
        shape: of the operation's input.
        value: what the client has sent.

    Raises:
        ServiceError: the shape does not allow it; names the fields.
    """
    problems: list[str] = []
    found: dict[str, Any] = _value(shape, value, "", problems)
    if problems:
        number = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: "
        raise invalid(number + "; ".join(problems))
    return found


def _value(shape: Any, value: Any, path: str, problems: list[str]) -> Any:
    kind = shape.type_name
    if kind == "timestamp":
        return _time(value, path)
    expected = _KINDS.get(kind)
    whole = kind in ("integer", "long") and isinstance(value, float) and value.is_integer()
    if expected is not None and not whole:
        wrong = isinstance(value, bool) and kind != "boolean"
        if wrong or not isinstance(value, expected):
            raise ServiceError("SerializationException", f"{path or 'the request'} is no {kind}: {value!r:.200}")
    if whole:
        value = int(value)
    problems += (f"Value {_shown(value)} at '{path}' failed to satisfy constraint: {why}" for why in _why(shape, value))
    if kind == "structure":
        return _structure(shape, value, path, problems)
    if kind == "list":
        return [_value(shape.member, each, f"{path}.{number}.member", problems) for number, each in enumerate(value, 1)]
    if kind == "map":
        return {
            _value(shape.key, key, f"{path}.key", problems): _value(shape.value, each, f"{path}.{key}", problems)
            for key, each in value.items()
        }
    return value


def _structure(shape: Any, value: Mapping[str, Any], path: str, problems: list[str]) -> dict[str, Any]:
    found = {}
    sent = {name: each for name, each in value.items() if each is not None}
    for name in shape.required_members:
        if name not in sent:
            where = _below(path, name)
            problems.append(f"Value null at '{where}' failed to satisfy constraint: Member must not be null")
    for name, each in sent.items():
        if name not in shape.members:
            problems.append(f"'{_below(path, name)}' is no member of {shape.name}, as this server knows it")
            continue
        found[name] = _value(shape.members[name], each, _below(path, name), problems)
    return found


def _below(path: str, name: str) -> str:
    own = name[:1].lower() + name[1:]
    return f"{path}.{own}" if path else own


def _why(shape: Any, value: Any) -> Iterator[str]:
    limits = shape.metadata
    least, most = limits.get("min"), limits.get("max")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if least is not None and not value >= least:
            yield f"Member must have value greater than or equal to {least}"
        if most is not None and not value <= most:
            yield f"Member must have value less than or equal to {most}"
    elif isinstance(value, str | list | Mapping):
        if least is not None and len(value) < least:
            yield f"Member must have length greater than or equal to {least}"
        if most is not None and len(value) > most:
            yield f"Member must have length less than or equal to {most}"
    if isinstance(value, str):
        if (text := limits.get("pattern")) and not pattern(text).fullmatch(value):
            yield f"Member must satisfy regular expression pattern: {text}"
        if (words := limits.get("enum")) and value not in words and shape.name not in _OWN_TABLES:
            yield f"Member must satisfy enum value set: [{', '.join(words)}]"


def _shown(value: Any) -> str:
    return f"'{value!s:.200}'"


def _time(value: Any, path: str) -> datetime:
    try:
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        if isinstance(value, str) and not _is_number(value):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if not isinstance(value, bool) and math.isfinite(float(value)):
            return datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        pass
    raise ServiceError("SerializationException", f"{path} is no time: {value!r:.200}")


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()
