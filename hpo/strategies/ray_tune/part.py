"""Part of a search: a searcher, a scheduler or a sampler as it was given, as a record has it, and made."""

from __future__ import annotations

import copy
import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.checking import is_number
from trainers.errors import ConfigurationError, in_words
from trainers.extras import install
from trainers.plain import plain_scalar
from trainers.process import PLACE, load, name_of

_LIBRARIES = re.compile(r"(ray\.tune\.(search|schedulers)|optuna\.samplers)(\.\w+)*:\w+")
"""Modules whose searchers, schedulers and samplers are no code of a user's. A dot behind the colon would lead out."""

_EXTRAS = {"hyperopt": "searchers", "bohb": "bohb", "cmaes": "searchers"}
"""What of a class or an error says which extra it needs."""

_SEEDS = ("seed", "random_state_seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A searcher, a scheduler or a sampler.

    Args:
        role: "searcher" or "scheduler"; of a part of a part, such as "searcher.sampler".
        place: its class, as "module:name".
        arguments: JSON, in which a nested part is a mapping of "type" and "arguments"; None where it was given as an
            object, whose arguments nothing can tell.
        thing: that object; None where it comes out of a record.
    """

    role: str
    place: str
    arguments: Mapping[str, Any] | None
    thing: Any = None

    @classmethod
    def of(cls, role: str, value: Any) -> Part:
        """A part as a user, a job file or a record gives it.

        Args:
            role: as above.
            value: an import path or a class, alone or with a mapping of arguments; `to_json`'s form; or an object.

        Raises:
            ConfigurationError: it is none of these, or an argument is no JSON.
        """
        match value:
            case {"type": str(), **others} if not set(others) - {"arguments"}:
                kind, arguments = value["type"], value.get("arguments", {})
            case (str() | type() as kind, Mapping() as arguments):
                pass
            case str() | type():
                kind, arguments = value, {}
            case None | bool() | int() | float() | Mapping() | list() | tuple():
                raise ConfigurationError(
                    f"{role} is {value!r}; give an object of Ray Tune's, a class or its import path such as "
                    "'ray.tune.search.optuna:OptunaSearch', or either with its arguments: (OptunaSearch, {'seed': 1})"
                )
            case _:
                return cls(role=role, place=name_of(type(value)), arguments=None, thing=value)
        name = kind if isinstance(kind, str) else name_of(kind)
        if not PLACE.fullmatch(name) and ".<locals>." not in name:
            raise ConfigurationError(
                f"{role} is {name!r}; give a module and a class, such as 'ray.tune.search.optuna:OptunaSearch'"
            )
        if arguments is not None:
            arguments = _json(role, arguments)
        return cls(role=role, place=name, arguments=arguments)

    def to_json(self) -> dict[str, Any]:
        """As a record has it."""
        return {"type": self.place, "arguments": self.arguments}

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.place.rpartition(":")[2].rpartition(".")[2]

    def code(self) -> dict[str, str]:
        """The user's own code that it is made of, by role."""
        if self.arguments is None:
            return {}
        own = {} if _LIBRARIES.fullmatch(self.place) else {self.role: self.place}
        return {**own, **{role: name for part in self._nested() for role, name in part.code().items()}}

    @property
    def bound(self) -> str:
        """Why no other process can make it again; empty where one can."""
        if self.arguments is not None:
            return ""
        return (
            f"{self.role} {self.name} was given as an object, whose arguments no record can hold; give "
            f"({self.name}, {{...}}), the class and its arguments"
        )

    def made(self, kinds: tuple[type, ...], seed: int, defaults: Mapping[str, Any]) -> Any:
        """The thing itself: a copy of the object, or one made anew.

        Args:
            kinds: what it may be.
            seed: for those that take one and were given none.
            defaults: arguments for those that take them and were not given them.

        Raises:
            ConfigurationError: it is nothing of these kinds, takes other arguments, cannot be copied, or came out of a
                record that could not hold it.
        """
        if self.thing is not None:
            self.kind(kinds)
            try:
                return copy.deepcopy(self.thing)
            except Exception as error:
                raise ConfigurationError(
                    f"{self.role} {self.name} cannot be copied, so that it could serve one job alone: "
                    f"{in_words(error)}; give ({self.name}, {{...}}), the class and its arguments"
                ) from error
        if self.arguments is None:
            raise ConfigurationError(f"{self.bound}; then it can be made anew")
        kind = self.kind(kinds)
        arguments = {name: self._argument(name, value, seed) for name, value in self.arguments.items()}
        try:
            return kind(**_filled(kind, arguments, _derived(seed, self.role), defaults))
        except Exception as error:
            why = in_words(error) + self._extra(error)
            raise ConfigurationError(
                f"{self.role} {self.name} cannot be made with {dict(self.arguments)}: {why}"
            ) from error

    def kind(self, kinds: tuple[type, ...]) -> type:
        """Its class.

        Args:
            kinds: what it may be.

        Raises:
            ConfigurationError: it is nothing of these kinds, or cannot be loaded.
        """
        kind = load(self.place, self.role, "class") if self.thing is None else type(self.thing)
        if not isinstance(kind, type) or not issubclass(kind, kinds):
            raise self._of_another_kind(kinds)
        return kind

    def _argument(self, name: str, value: Any, seed: int) -> Any:
        if not _is_part(value):
            return value
        from optuna.samplers import BaseSampler
        from ray.tune.schedulers import TrialScheduler
        from ray.tune.search import Searcher

        return Part.of(f"{self.role}.{name}", value).made((Searcher, TrialScheduler, BaseSampler), seed, {})

    def _nested(self) -> list[Part]:
        arguments = self.arguments or {}
        return [Part.of(f"{self.role}.{name}", value) for name, value in arguments.items() if _is_part(value)]

    def _of_another_kind(self, kinds: tuple[type, ...]) -> ConfigurationError:
        wanted = " or ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
        return ConfigurationError(f"{self.role} is {self.place}; give a {wanted}")

    def _extra(self, error: Exception) -> str:
        about = f"{self.place} {error}".lower() if isinstance(error, AssertionError | ImportError) else ""
        extra = next((extra for word, extra in _EXTRAS.items() if word in about), "")
        return f"; install it: {install(extra)}" if extra else ""


def named_code(options: Mapping[str, Any]) -> dict[str, str]:
    """The user's own code in the options of a recorded strategy or of a job file, by role; nothing is imported.

    Args:
        options: parts by role; others are passed over.
    """
    parts = [Part.of(role, value) for role, value in options.items() if _is_part(value)]
    return {role: name for part in parts for role, name in part.code().items()}


def _is_part(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str) and not set(value) - {"type", "arguments"}


def _filled(kind: type, given: dict[str, Any], seed: int, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with what the class takes beside those that were given; whoever is given a sampler passes no seed."""
    takes = inspect.signature(kind).parameters
    seeds = () if "sampler" in given else _SEEDS
    own = {**defaults, **dict.fromkeys(seeds, seed)}
    return {**{name: value for name, value in own.items() if name in takes}, **given}


def _derived(seed: int, role: str) -> int:
    """A 31-bit seed for one part: NumPy's global generator takes no larger one than 32 bits."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{role}".encode(), digest_size=4).digest(), "big") >> 1


def _json(what: str, value: Any) -> Any:
    """An argument as JSON, nested parts in `Part.to_json`'s form.

    Raises:
        ConfigurationError: it is something else.
    """
    plain = plain_scalar(value)
    match plain:
        case None | bool() | str():
            return plain
        case int() | float() if is_number(plain):
            return plain
        case int() | float():
            raise ConfigurationError(f"{what} is {value!r}; give a finite number")
        case type() | (type(), Mapping()):
            return Part.of(what, plain).to_json()
        case Mapping() if all(isinstance(name, str) for name in plain):
            return {name: _json(f"{what}.{name}", each) for name, each in plain.items()}
        case Sequence():
            return [_json(what, each) for each in plain]
    raise ConfigurationError(
        f"{what} is {value!r}, which no record can hold; give JSON, or a class with its arguments: (TPESampler, "
        "{'seed': 1})"
    )
