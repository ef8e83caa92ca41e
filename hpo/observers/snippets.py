"""Code to copy from a job's result: its trainer in YAML and in Python."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from hpo.strategies import strategy_code
from hpo.text import packed
from hpo.yaml_core import flow
from trainers import ScalingConfig
from trainers.registry import code_in
from trainers.trainer import OWN_CLASS

CODE_WIDTH = 76

TUNER = "HyperparameterTuner"
"""The class that attaches to a tuning job."""

_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_PLACE = re.compile(rf"{_DOTTED}:{_DOTTED}(\.<locals>\.{_DOTTED})*", re.ASCII)


def as_yaml(configuration: dict[str, Any], *, indent: str = "") -> str:
    """A trainer's hyperparameters, and its length where it has one, as they stand in a job file.

    Args:
        configuration: in the form that `Trainer.to_json` gives it.
        indent: before the keys.
    """
    parts = [flow({name: value})[1:-1] for name, value in configuration["hyperparameters"].items()]
    dumped = "\n ".join(packed(parts, CODE_WIDTH - 5))
    length = configuration.get("options", {}).get("length")
    said = [] if length is None else [f"{indent}{flow({'length': length})[1:-1]}"]
    return "\n".join([f"{indent}hyperparameters:", textwrap.indent(f"{{{dumped}}}", "    "), *said])


def as_python(configuration: dict[str, Any]) -> str:
    """The code that makes a trainer, given the form that `Trainer.to_json` gives it.

    Code of the user's is imported by its own name; functions of a script are left to be put there.
    """
    named = {argument: _imported(code) for argument, code in code_in(configuration).items()}
    kind, own_import = named.get(OWN_CLASS, (configuration["trainer"], ""))
    options = [
        f"{name}={named[name][0] if name in named else repr(value)}"
        for name, value in configuration.get("options", {}).items()
    ]
    used = [line for name, (_, line) in named.items() if name in (OWN_CLASS, *configuration.get("options", {}))]
    values = [f"{name!r}: {value!r}" for name, value in configuration["hyperparameters"].items()]
    arguments = ", ".join([f"scaling={_scaling(configuration['scaling'])}", *options])
    return "\n".join(
        [
            f"from trainers import {', '.join(['ScalingConfig', *([] if own_import else [kind])])}",
            *dict.fromkeys(line for line in used if line),
            f"trainer = {kind}({arguments}, hyperparameters={{",
            *(f"    {line}" for line in packed(values, CODE_WIDTH - 4)),
            "})",
        ]
    )


def as_attached(
    name: str, configuration: dict[str, Any], store: str | None = None, *, strategy: str = "", of: str = TUNER
) -> str:
    """The expression that attaches to a job.

    Args:
        name: the job's.
        configuration: its trainer, in the form that `Trainer.to_json` gives it.
        store: database URL of its record, where that is not the one that is found by itself.
        strategy: the job's, as its record has it.
        of: the class whose `attach` it calls.
    """
    arguments = [f"store={store!r}"] if store else []
    allowed = ["allow_code=True"] if OWN_CLASS in code_in(configuration) or strategy_code(strategy, None) else []
    return f"{of}.attach({', '.join([repr(name), *arguments, *allowed])})"


def _scaling(recorded: dict[str, Any]) -> str:
    """The call that makes a ScalingConfig; what is as usual is left out."""
    arguments = {
        name: value
        for name, value in recorded.items()
        if name == "num_workers" or value != getattr(ScalingConfig, name)
    }
    return f"ScalingConfig({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _imported(code: str) -> tuple[str, str]:
    """A function or class as Python has it, and the line that brings it there.

    Args:
        code: as "module:name".
    """
    module, _, path = code.partition(":")
    if not _PLACE.fullmatch(code):
        return repr(code), ""
    if module == "__main__" or "<locals>" in path:
        name = path.rpartition(".")[2]
        return name, f"# {name}: as in the script that ran the job"
    return path, f"from {module} import {path.partition('.')[0]}"
