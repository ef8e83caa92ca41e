"""Options of a job beyond SageMaker's class, each declared once: type, bounds, default and description.

The tuner's arguments, the keys of a job file, the record and the reference pages are made from these declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from trainers import storage
from trainers.checking import MOST_WHOLE, did_you_mean, is_whole, shown
from trainers.errors import ConfigurationError

NUM_TO_KEEP = 5
"""How many trials' checkpoints stay where nothing is said."""

OF_SEVERAL = ("repeats", "num_to_keep", "max_trial_runtime", "max_trial_wait")
"""Options that are about several trials, and no single training's."""

Made = TypeVar("Made", bound=Callable[..., None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Description of an option beside its type.

    Args:
        default: its value where it is not given.
        description: what it is, in the words of the reference.
        least: the least whole number that it may be.
        most: the greatest.
        none: what None is for, as "to keep every trial's checkpoint"; empty where None is not worth a remark.
        group: the group of keys of a job file that it stands in; empty for the file's own keys.
    """

    default: Any
    description: str
    least: int | None = None
    most: int | None = None
    none: str = ""
    group: str = ""


class Options(TypedDict, total=False):
    """The options, by name; those that are left out have their defaults."""

    objective_value: Annotated[
        Literal["last", "best"],
        Option(
            default="last",
            group="tuning",
            description="compare trials by the last value they reported, or by the best so far",
        ),
    ]
    repeats: Annotated[
        int,
        Option(
            default=1,
            least=1,
            most=100,
            group="tuning",
            description="trials of each configuration, which differ in their seeds; configurations are compared by the "
            "mean. Each is one of max_jobs, which has to be a multiple of it",
        ),
    ]
    priority: Annotated[
        int,
        Option(
            default=1,
            least=1,
            most=100,
            group="tuning",
            description="the job's weight where several share a cluster: 2 may hold twice what 1 may",
        ),
    ]
    max_wait: Annotated[
        int | None,
        Option(
            default=None,
            least=1,
            group="tuning",
            description="the job stops after this many seconds of waiting for machines and running together; "
            "max_runtime_in_seconds then counts running alone. null waits 120 s for room",
        ),
    ]
    max_trial_runtime: Annotated[
        int | None,
        Option(
            default=None,
            least=1,
            group="tuning",
            description="a trial that gangs have served for this many seconds is stopped at its next report, and what "
            "it found is kept; null sets no limit",
        ),
    ]
    max_trial_wait: Annotated[
        int | None,
        Option(
            default=None,
            least=1,
            group="tuning",
            description="likewise after this many seconds of being served and of waiting for machines again where they "
            "were lost, both together",
        ),
    ]
    max_silence: Annotated[
        int | None,
        Option(
            default=None,
            least=1,
            group="tuning",
            description="a gang that trains for this many seconds without a report is taken for dead and its trial "
            "handed out again; null is the trainer's own, 600 for XGBoost",
        ),
    ]
    storage_path: Annotated[
        str | None,
        Option(default=None, description="folder or URI (s3://, gs://) for models; null is WARMBAND_HOME/jobs"),
    ]
    num_to_keep: Annotated[
        int | None,
        Option(
            default=NUM_TO_KEEP,
            least=1,
            none="to keep every trial's checkpoint",
            description="trials whose models stay, the best ones; null keeps every trial's",
        ),
    ]


@cache
def declared() -> Mapping[str, tuple[Any, Option]]:
    """Each option's type and declaration, by name."""
    hints = get_type_hints(Options, include_extras=True)
    return {name: (get_args(hint)[0], hint.__metadata__[0]) for name, hint in hints.items()}


def complete(values: Mapping[str, Any]) -> Options:
    """Options with the defaults of those that are not given.

    Raises:
        ConfigurationError: naming an option, its value and what to give.
    """
    options = {name: values.get(name, option.default) for name, (_, option) in declared().items()}
    for name, value in options.items():
        check_option(name, value)
    if options["storage_path"]:
        storage.check_no_credentials(options["storage_path"], "storage_path")
    return cast(Options, options)


def check_option(name: str, value: object) -> None:
    """Refuses a value of an option that is not of its type, or out of its bounds.

    Raises:
        ConfigurationError: naming the option, its value and what to give.
    """
    kind, option = declared()[name]
    kinds = get_args(kind) if get_origin(kind) is not Literal else (kind,)
    plain = [each for each in kinds or (kind,) if each is not NoneType]
    if value is None and NoneType in kinds:
        return
    wanted = _refusal(value, plain[0], option)
    if wanted:
        raise ConfigurationError(
            f"{name} is {shown(value)}; give {wanted}" + (option.none and f", or None {option.none}")
        )


def one_of(value: object, allowed: Sequence[str]) -> str:
    """The remedy for a value: one of a few words, and the nearest of them."""
    return f"one of {', '.join(allowed)}{did_you_mean(value, allowed, cutoff=0.3)}"


def _refusal(value: object, kind: Any, option: Option) -> str:
    """The remedy for a value; empty where it may stay."""
    if get_origin(kind) is Literal:
        allowed = [str(each) for each in get_args(kind)]
        return "" if value in allowed else one_of(value, allowed)
    if kind is str:
        return "" if isinstance(value, str) else "a string"
    least, most = option.least or 0, MOST_WHOLE if option.most is None else option.most
    if is_whole(value, least, most):
        return ""
    return f"a whole number, {least} or more" if option.most is None else f"a whole number from {least} to {most}"


def with_options(function: Made) -> Made:
    """Lets the signature of a function that takes `**options` name each of them, with its type and default."""
    signature = inspect.signature(function)
    named = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=kind)
        for name, (kind, option) in declared().items()
    ]
    function.__signature__ = signature.replace(parameters=[*named, *own])  # type: ignore[attr-defined]
    return function
