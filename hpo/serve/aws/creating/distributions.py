"""Launchers of programs, as the SDK's `distribution=` asks for them by its hyperparameters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpo.serve.aws.creating.settings import (
    DDP,
    HYPERPARAMETERS,
    MIRRORED,
    MPI,
    MPI_OPTIONS,
    MPI_PROCESSES,
    SERVERS,
    TORCH,
)
from hpo.serve.aws.errors import invalid

_FLAGS = (TORCH, DDP, MPI, MIRRORED, SERVERS)
_NO_SERVERS = ("pytorch", "mxnet", "sklearn", "scikit-learn", "xgboost")
"""Parts of images' names whose programs know nothing of TensorFlow's parameter servers."""
_NCCL_DEBUG = "--NCCL_DEBUG"
"""Option among mpirun's that the service's containers take for themselves; a variable of the program."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Launcher of a program with all that was said of it.

    Args:
        launcher: as `ScriptTrainer` takes it.
        processes: of each worker.
        servers: parameter servers, which are workers beside those of the instances.
    """

    launcher: str = "python"
    processes: int = 1
    servers: int = 0


def distribution_of(told: Mapping[str, Any], image: str, instances: int, gpus: int) -> Distribution:
    """Return the launcher that the SDK's hyperparameters ask for.

    Args:
        told: the hyperparameters, as values.
        image: URI of the training's image.
        instances: of the training.
        gpus: of an instance; as many processes are started on it, as the service's containers do.

    Raises:
        ServiceError: naming the hyperparameter whose value does not go.
    """
    enabled = [flag for flag in _FLAGS if _flag(told, flag)]
    if len(enabled) > 1:
        both = ", ".join(f"{flag} ({HYPERPARAMETERS[flag].argument})" for flag in enabled)
        raise invalid(f"distribution asks for several launchers at once, {both}; enable one of them")
    if not enabled:
        return Distribution()
    match enabled[0]:
        case flag if flag in (TORCH, DDP):
            return Distribution(launcher="torchrun", processes=_processes(told, gpus))
        case flag if flag == MPI:
            launcher = " ".join(["mpirun", *map(shlex.quote, _mpi_options(told))])
            return Distribution(launcher=launcher, processes=_processes(told, gpus))
        case flag if flag == MIRRORED:
            return Distribution(launcher="tensorflow")
    if any(part in image for part in _NO_SERVERS) and "tensorflow" not in image:
        raise invalid(
            f"{SERVERS} is True with image {image!r}: parameter servers are TensorFlow's here; leave out "
            f"distribution={HYPERPARAMETERS[SERVERS].argument}, or give a launcher that the image's programs know"
        )
    return Distribution(launcher="tensorflow", servers=instances) if instances > 1 else Distribution()


def _flag(told: Mapping[str, Any], name: str) -> bool:
    value = told.get(name, False)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise invalid(f"hyperparameter {name} is {value!r}; give true or false")
    return value


def _processes(told: Mapping[str, Any], gpus: int) -> int:
    value = told.get(MPI_PROCESSES)
    if value is None:
        return max(1, gpus)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise invalid(
            f"hyperparameter {MPI_PROCESSES} is {value!r}; give processes_per_host, a whole number of 1 or more"
        )
    return value


def _mpi_options(told: Mapping[str, Any]) -> list[str]:
    """The options of mpirun in words; the service's own among them become variables."""
    value = told.get(MPI_OPTIONS) or ""
    try:
        words = shlex.split(str(value))
    except ValueError as error:
        raise invalid(
            f"hyperparameter {MPI_OPTIONS} is {value!r}: {error}; give options as a shell takes them"
        ) from None
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, level = word.partition("=")
        if name != _NCCL_DEBUG:
            # The launcher looks for the spelling that Open MPI documents.
            options.append("--bind-to" if word == "-bind-to" else word)
            continue
        level = level if equals else next(rest, "")
        if not level:
            raise invalid(f"hyperparameter {MPI_OPTIONS} is {value!r}: {_NCCL_DEBUG} has no value; give INFO, say")
        options += ["-x", f"NCCL_DEBUG={level}"]
    return options
