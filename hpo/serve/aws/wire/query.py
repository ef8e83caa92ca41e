"""Protocol "query": requests as forms, and responses as XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

from hpo.serve.aws.errors import ServiceError

_NUMBERS = {"integer": int, "long": int, "float": float, "double": float}


def from_form(shape: Any, form: Mapping[str, str], path: str = "") -> Any:
    """What a form says of a shape; None where it says nothing.

    Args:
        shape: of the operation's input, or of a part of it.
        form: its fields, such as Dimensions.member.1.Name.
        path: of the part.

    Raises:
        ServiceError: a number is none.
    """
    if shape.type_name == "structure":
        members = {name: from_form(each, form, f"{path}.{name}" if path else name) for name, each in _members(shape)}
        found = {name: value for name, value in members.items() if value is not None}
        return found if found or not path else None
    if shape.type_name == "list":
        start = re.compile(rf"{re.escape(path)}\.member\.(\d{{1,6}})(\.|$)")
        numbers = sorted({int(hit[1]) for name in form if (hit := start.match(name))})
        return [from_form(shape.member, form, f"{path}.member.{number}") for number in numbers] or None
    text = form.get(path)
    if text is None:
        return None
    if shape.type_name == "boolean" and text in ("true", "false"):
        return text == "true"
    try:
        return _NUMBERS.get(shape.type_name, str)(text)
    except ValueError:
        raise ServiceError("MalformedInput", f"{path} is no {shape.type_name}: {text!r:.200}") from None


def _members(shape: Any) -> list[tuple[str, Any]]:
    return list(shape.members.items())


def to_xml(operation: str, namespace: str, result: Mapping[str, Any], request_id: str) -> bytes:
    """A response."""
    body = "".join(_element(name, value) for name, value in result.items())
    metadata = _element("ResponseMetadata", {"RequestId": request_id})
    return (
        f'<{operation}Response xmlns="{escape(namespace)}"><{operation}Result>{body}</{operation}Result>'
        f"{metadata}</{operation}Response>"
    ).encode()


def error_xml(namespace: str, code: str, message: str, request_id: str, *, theirs: bool) -> bytes:
    """An error; `theirs` says that the client is wrong and not the server."""
    error = _element("Error", {"Type": "Sender" if theirs else "Receiver", "Code": code, "Message": message})
    request = _element("RequestId", request_id)
    return f'<ErrorResponse xmlns="{escape(namespace)}">{error}{request}</ErrorResponse>'.encode()


def _element(name: str, value: Any) -> str:
    return f"<{name}>{''.join(_content(value))}</{name}>"


def _content(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (_element(name, each) for name, each in value.items())
    elif isinstance(value, list):
        yield from (_element("member", each) for each in value)
    else:
        yield escape(str(value).lower() if isinstance(value, bool) else str(value))
