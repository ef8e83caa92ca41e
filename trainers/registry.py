"""Trainers by their names in records: Warmband's own, and users' classes, which run only with consent."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from trainers import TRAINERS
from trainers.errors import ConfigurationError
from trainers.gangs import scaling_from
from trainers.parts import parts_of
from trainers.process import PLACE, check_outside, code_named, load
from trainers.trainer import OWN_CLASS, Trainer


def trainer_from_json(state: Mapping[str, Any], *, allow_code: bool = False) -> Trainer:
    """A trainer as `Trainer.to_json` recorded it.

    Args:
        state: what was recorded.
        allow_code: import the user's code that it names. Without, a training function is known by its name alone, and
            is not called.

    Raises:
        ConfigurationError: it is no such record, or the trainer is unknown, or a user's own class that is not allowed
            or not found.
    """
    match state:
        case {"trainer": str(name), "scaling": dict(scaling), "hyperparameters": dict(hyperparameters)}:
            if name not in TRAINERS and not allow_code and PLACE.fullmatch(name):
                raise ConfigurationError(f"{OWN_CLASS} {name!r} is a class of a user's own, which was not allowed")
            kind = trainer_class(name)
            try:
                options = dict(state.get("options", {}))
                return kind.restored(scaling_from(scaling), hyperparameters, options, allow_code=allow_code)
            except (TypeError, ValueError, KeyError) as error:
                if isinstance(error, ConfigurationError):
                    raise
                raise ConfigurationError(f"the record of a trainer is {state!r}: {error}") from None
    raise ConfigurationError(f"the record of a trainer is {state!r}; give what to_json() of one returns")


def trainer_class(name: str) -> type[Trainer]:
    """The class of a name: one of Warmband's, or "module:name" of a user's own, which is imported.

    Raises:
        ConfigurationError: there is no such class, or it is no trainer.
    """
    if name in TRAINERS:
        kind: type[Trainer] = getattr(import_module(TRAINERS[name]), name)
        return kind
    check_outside(name, OWN_CLASS, "class")
    if not PLACE.fullmatch(name):
        raise ConfigurationError(
            f"trainer {name!r} is unknown; known are {', '.join(sorted(TRAINERS))}, and classes of your own as "
            "'module:name'"
        )
    trainer = load(name, OWN_CLASS, "class")
    if not isinstance(trainer, type) or not issubclass(trainer, Trainer):
        raise ConfigurationError(f"{OWN_CLASS} {name!r} is {trainer!r}; give a subclass of trainers.Trainer")
    return trainer


def code_in(state: Mapping[str, Any]) -> dict[str, str]:
    """The user's code that a trainer's record names, by what it was given as; nothing of it is imported.

    It does not rely on what the record says of itself: a trainer of Warmband's knows which of its options are code.

    Args:
        state: what `Trainer.to_json` returned.
    """
    name, options = str(state.get("trainer")), dict(state.get("options") or {})
    names = {str(argument): str(value) for argument, value in dict(state.get("code") or {}).items()}
    if name not in TRAINERS:
        return {**names, OWN_CLASS: name} if ":" in name else names
    known = trainer_class(name).code_options
    names |= code_named(options, known)
    for part, within in parts_of(state).items():
        names |= {f"{part}.{argument}": place for argument, place in code_in(within).items()}
    return names


def unit_in(state: Mapping[str, Any]) -> str:
    """The word for a unit of resource in a trainer's record; of a user's own class, which is not imported, "unit"."""
    if state.get("trainer") not in TRAINERS:
        return Trainer.unit
    units = {unit_in(part) for part in parts_of(state).values()}
    if not units:
        kind = trainer_class(state["trainer"])
        unit_of = getattr(kind, "unit_of", None)  # Of trainers whose options say what a unit is.
        units = {kind.unit if unit_of is None else unit_of(dict(state.get("options") or {}))}
    return units.pop() if len(units) == 1 else Trainer.unit
