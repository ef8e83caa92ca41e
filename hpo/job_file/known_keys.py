"""The keys of a job file, taken from the models that check it, and errors about unknown ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hpo.job_file.yaml_file import MOST_PROBLEMS, JobFile, Keys, Problem, dotted, shown
from hpo.jobs import declared
from trainers.checking import did_you_mean
from trainers.process import PLACE as ANYWHERE

LIKENESS = 0.5
"""What a name has to have to be taken for another one; see `trainers.checking.nearest`."""

PLACE = f"^{ANYWHERE.pattern}$"
"""The pattern of code of the user's own, as module:name."""

Positive = Annotated[int, Field(ge=1)]

NAME = "NAME"
"""Stands for a name of the user's own in the path of a key."""


class Strict(BaseModel):
    """A group of keys: no other key is taken, and no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def options_model(group: str, but: Sequence[str] = ()) -> Any:
    """A model of the options that are declared for a group of keys, without some; the empty one is the file's own."""
    fields: dict[str, Any] = {
        name: (kind, Field(option.default, description=option.description, ge=option.least, le=option.most))
        for name, (kind, option) in declared().items()
        if option.group == group and name not in but
    }
    return create_model(f"{group.title()}Options", __base__=Strict, **fields)


@dataclass(frozen=True, slots=True)
class Give:
    """Hint for a field whose type does not say enough."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: its dotted path, the kind of range that it is for if not for all, and what it takes."""

    path: str
    kind: str
    takes: str
    default: str
    description: str


def keys(model: type[BaseModel], under: tuple[str, ...] = (), kind: str = "") -> Iterator[Key]:
    """Every key of a model and of those within it, in their order."""
    for name, info in model.model_fields.items():
        path = (*under, name)
        default = "required" if info.is_required() else shown(info.get_default(call_default_factory=True))
        yield Key(
            path=".".join(path), kind=kind, takes=takes(info), default=default, description=info.description or ""
        )
        within = list(_models(info.annotation))
        for inner, named in within:
            yield from keys(inner, (*path, NAME) if named else path, _kind(inner) if len(within) > 1 else kind)


def takes(info: FieldInfo) -> str:
    """The allowed values of a field, in words that follow "give"."""
    hint = next((data.text for data in info.metadata if isinstance(data, Give)), None)
    return hint or _words(info.annotation, info.metadata)


def problems(error: ValidationError, model: type[BaseModel], file: JobFile) -> list[Problem]:
    """The problems of a validation, in our own words; only the first of many are compared with the names that exist."""
    details = error.errors(include_url=False)
    return [_problem(each, model, file.values, place < MOST_PROBLEMS) for place, each in enumerate(details)]


def _problem(detail: ErrorDetails, model: type[BaseModel], values: Mapping[str, Any], hinted: bool) -> Problem:
    place = _follow(detail["loc"], model, values, missing=detail["type"] == "missing")
    where = dotted(place.keys)
    if detail["type"] == "missing":
        description = place.info.description if place.info else ""
        text = f"{where} is missing; give {takes(place.info)}: {description}" if place.info else f"{where} is missing"
    elif detail["type"] == "extra_forbidden" and place.owner is not None:
        text = f"{where}: unknown key{_meant(str(place.keys[-1]), place.owner, model) if hinted else ''}"
    elif detail["type"].startswith("union_tag") and isinstance(place.value, dict):
        known = [_kind(option) for option, _ in _options(place.info.annotation if place.info else None)]
        kind = place.value.get("type")
        problem = f"is {shown(kind)}" if "type" in place.value else "is missing"
        meant = did_you_mean(kind, known, LIKENESS) if hinted else ""
        text = f"{where}.type {problem}; give one of {', '.join(known)}{meant}"
        return Problem(keys=(*place.keys, "type"), text=text)
    elif detail["type"] == "value_error":
        text = ": ".join(part for part in (where, str(detail["ctx"]["error"])) if part)
    elif place.info is not None:
        text = f"{where} is {shown(place.value)}; give {takes(place.info)}{_hint(place) if hinted else ''}"
    else:
        text = f"{where} is {shown(place.value)}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return Problem(keys=place.keys, text=text)


@dataclass(slots=True, kw_only=True)
class _Found:
    """Where an error's location leads: to a value, the field that takes it, and the model that has the field."""

    keys: Keys = ()
    value: Any = None
    info: FieldInfo | None = None
    owner: type[BaseModel] | None = None


def _follow(location: Sequence[str | int], model: type[BaseModel], values: Any, *, missing: bool) -> _Found:
    """Follows a location of pydantic's down to a value, past the parts that are pydantic's own."""
    target = _Found(value=values, owner=model)
    within: type[BaseModel] | None = model
    named: Any = None
    for place, part in enumerate(location):
        last_and_missing = missing and place == len(location) - 1
        if within is None and named is None:
            break  # Inside of a value that one field takes: the whole of it is what is shown.
        if not isinstance(target.value, dict) or (part not in target.value and not last_and_missing):
            continue
        target.keys = (*target.keys, part)
        target.value = target.value.get(part)
        if within is not None:
            target.owner, target.info = within, within.model_fields.get(str(part))
            annotation = target.info.annotation if target.info else None
        else:
            annotation, target.info = named, FieldInfo.from_annotation(named)
        within, named = _below(annotation, target.value)
    return target


def _below(annotation: Any, value: Any) -> tuple[type[BaseModel] | None, Any]:
    """The model that takes what is in a value, or what takes each of its entries if it has names of the user's own."""
    for option, _ in _options(annotation):
        if get_origin(option) is dict and get_args(option)[1] is not Any:
            return None, get_args(option)[1]
    models = [option for option, _ in _options(annotation) if _is_model(option)]
    if len(models) > 1:
        kind = value.get("type") if isinstance(value, dict) else None
        models = [option for option in models if _kind(option) == kind]
    return (models[0] if models else None), None


def _models(annotation: Any) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models in an annotation, and whether they are under names of the user's own."""
    for option, _ in _options(annotation):
        if _is_model(option):
            yield option, False
        elif get_origin(option) is dict:
            yield from ((within, True) for within, _ in _models(get_args(option)[1]))


def _options(annotation: Any, metadata: Sequence[Any] = ()) -> list[tuple[Any, Sequence[Any]]]:
    """The alternatives in an annotation, without None, and what is said of each."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        return _options(inner, [*notes, *metadata])
    if get_origin(annotation) in (None, dict, list, Literal):
        return [] if annotation in (None, NoneType) else [(annotation, metadata)]
    return [each for option in get_args(annotation) for each in _options(option, metadata)]


def _is_model(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, BaseModel)


def _kind(model: type[BaseModel]) -> str:
    """The one value that the field `type` may have."""
    info = model.model_fields.get("type")
    annotation = info.annotation if info else None
    return str(get_args(annotation)[0]) if get_origin(annotation) is Literal else ""


def _words(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    return ", or ".join(_one(option, notes) for option, notes in _options(annotation, metadata))


def _one(option: Any, metadata: Sequence[Any]) -> str:
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Any: "any value"}
    if get_origin(option) is Literal:
        values = [str(value) for value in get_args(option)]
        return f"one of {', '.join(values)}" if len(values) > 1 else values[0]
    if get_origin(option) is list:
        inner = get_args(option)[0]
        return "a list" if inner is Any else f"a list of {_words(inner).removeprefix('a ')}"
    if get_origin(option) is dict:
        return "names and values"
    return plain.get(option, "a group of keys") + _bounds(metadata)


def _bounds(metadata: Sequence[Any]) -> str:
    def bound(name: str) -> Any:
        values = [getattr(data, name) for data in _flat(metadata) if getattr(data, name, None) is not None]
        return values[0] if values else None

    least, above, most = bound("ge"), bound("gt"), bound("le")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    return (f", {least} or more" if least is not None else "") + (f" above {above}" if above is not None else "")


def _flat(metadata: Sequence[Any]) -> Iterator[Any]:
    for data in metadata:
        yield from _flat(data.metadata) if isinstance(data, FieldInfo) else (data,)


def _hint(place: _Found) -> str:
    options = [option for option, _ in _options(place.info.annotation if place.info else None)]
    for option in options:
        if get_origin(option) is Literal:
            return did_you_mean(place.value, [str(value) for value in get_args(option)], LIKENESS)
    if isinstance(place.value, (bool, int, float)) and str in options:
        return f", in quotes: '{shown(place.value)}'"
    if isinstance(place.value, float) and not math.isfinite(place.value):
        return ", and a finite one"
    return ""


def _meant(name: str, owner: type[BaseModel], root: type[BaseModel]) -> str:
    """What an unknown key was probably meant to be: one of its group's, or one that belongs elsewhere."""
    known = list(owner.model_fields)
    hint = did_you_mean(name, known, LIKENESS)
    if hint:
        return hint
    elsewhere = [path for path in _paths(root) if path.rpartition(".")[2] == name and NAME not in path]
    if elsewhere:
        return f" here; did you mean {elsewhere[0]!r}?"
    return f"; known here are {', '.join(known)}"


@functools.cache
def _paths(root: type[BaseModel]) -> tuple[str, ...]:
    """The dotted paths of all keys of a model."""
    return tuple(key.path for key in keys(root))


def own_fields(model: BaseModel, *but: str) -> dict[str, Any]:
    """The fields of a model that have the Python API's own names."""
    return {name: getattr(model, name) for name in type(model).model_fields if name not in but}
