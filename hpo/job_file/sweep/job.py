"""The job file that a sweep file comes to, with comments about what was chosen and left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpo.job_file.reading import check_made
from hpo.job_file.sweep.parameters import parameters_of
from hpo.job_file.sweep.program import trainer_of
from hpo.job_file.sweep.search import tuning_of
from hpo.job_file.sweep.sweep_file import Sweep
from hpo.job_file.yaml_file import JobFile, shown
from hpo.yaml_core import flow

_CARRIED = ("program", "command", "method", "metric", "parameters", "early_terminate", "run_cap", "name")
_LEFT_OUT = {
    "description": "is left out",
    "project": "is left out: Warmband keeps jobs in its own record; trackers.wandb logs them to a project, too",
    "entity": "is left out: Warmband keeps jobs in its own record; trackers.wandb logs them to an entity, too",
    "controller": "is left out: Warmband is the controller",
    "apiVersion": "is left out",
    "kind": "is left out",
    "settings": "is left out",
}
_REFUSED = {
    "metrics": "a job has one objective; give metric",
    "scheduler": "Warmband has its own; leave it out, and give tuning.searcher in the job file for one of Optuna's",
    "job": "Warmband starts a program; give program",
    "image_uri": "Warmband starts a program where Ray's workers run; give program",
}
_BEGIN = """\
# From {path}, by hpo import. It names a program, and so runs under --allow-code: hpo tune FILE --allow-code
"""
_LINES = "#\n# What was chosen, and what has no counterpart, by the lines of that file:\n"


def job_of_sweep(path: str | Path, *, units: int | None = None) -> str:
    """The text of a job file that does what a sweep file does.

    Args:
        path: the sweep file.
        units: reports of a full trial, where the sweep does not say how many there are.

    Raises:
        ConfigurationError: it cannot be read, or has what cannot be carried over; the message names key, value and
            remedy of each, and its line.
    """
    sweep = Sweep.read(path)
    name = _top(sweep)
    parameters = parameters_of(sweep)
    trainer = trainer_of(sweep, parameters)
    tuning = tuning_of(sweep, parameters, trainer.get("hyperparameters", parameters.constants), units)
    if units is not None and "hyperband" not in tuning:
        trainer["length"] = units
    if sweep.problems or sweep.file.problems:
        raise sweep.file.refusal(sweep.problems)
    _say_reports(sweep, str(tuning["objective_metric_name"]), trainer.get("arguments", {}))
    values = {**({"name": name} if name else {}), "trainer": trainer, "tuning": tuning}
    check_made(JobFile(path="that the sweep comes to", values=dict(values)))
    notes = "".join(f"# {line}\n" for line in sweep.lines())
    return _BEGIN.format(path=Path(path).name) + _LINES + notes + "\n" + _text(values)


def _top(sweep: Sweep) -> str | None:
    """Looks at the keys that are of no other part, and gives the job's name."""
    sweep.check_known(sweep.values, (*_CARRIED, *_LEFT_OUT, *_REFUSED))
    for key, remedy in _REFUSED.items():
        if key in sweep.values:
            sweep.refuse((key,), f"{key} is {shown(sweep.values[key])}: {remedy}")
    for key, told in _LEFT_OUT.items():
        if key in sweep.values:
            sweep.note((key,), f"{key} {told}")
    name = sweep.values.get("name")
    if name is None:
        return None
    if isinstance(name, str) and len(name) <= 32 and re.fullmatch(r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?", name):
        sweep.note(("name",), "name is the job's, which a record has once: change it for the next job")
        return name
    sweep.note(("name",), f"name {shown(name)} is left out: a job's has at most 32 letters, digits and hyphens")
    return None


def _say_reports(sweep: Sweep, metric: str, arguments: Mapping[str, Any]) -> None:
    report = f"warmband.report({{{metric!r}: value}}, step=epoch)"
    sweep.note(
        (),
        f"wandb.log prints nothing that could be read: let the program call {report} beside it (import warmband, a "
        "module without dependencies), or give trainer.metric_definitions of what it prints",
    )
    sweep.note((), "a worker holds one CPU: give trainer.use_gpu: true for a GPU, or trainer.resources_per_worker")
    if "style" not in arguments:
        sweep.note(
            (),
            "the program gets --name value, where W&B gives --name=value; booleans, lists and names of one letter are "
            "given as its source declares them",
        )


def _text(values: Mapping[str, Any]) -> str:
    """Groups with a key a line, and so ranges; what is within these stands on their lines."""
    lines: list[str] = []
    for key, group in values.items():
        if not isinstance(group, dict):
            lines.append(_line(key, group))
            continue
        lines.append(f"{key}:")
        for name, value in group.items():
            if name in ("ranges", "hyperparameters", "environment"):
                lines += [f"  {name}:", *(f"    {_line(inner, each)}" for inner, each in value.items())]
            else:
                lines.append(f"  {_line(name, value)}")
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    """A key and its value on one line, the keys within it in their order."""
    if isinstance(value, dict) and value:
        return f"{flow({key: 0})[1:-4]}: {{{', '.join(_line(inner, each) for inner, each in value.items())}}}"
    return flow({key: value})[1:-1]
