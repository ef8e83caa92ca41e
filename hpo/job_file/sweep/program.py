"""The program of a sweep and its command, as the trainer of a job file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hpo.job_file.sweep.command_line import ARGUMENTS, COMMAND, CommandLine, command_line_of
from hpo.job_file.sweep.parameters import Parameters
from hpo.job_file.sweep.sweep_file import Sweep
from hpo.job_file.yaml_file import dotted, shown
from trainers.script import doubled

_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_MODULES = {"torch.distributed.run": ["torchrun"], "accelerate.commands.launch": ["accelerate", "launch"]}
_GIVEN = "which Warmband gives"
_TORCHRUN = {
    **dict.fromkeys(("node_rank", "master_addr", "master_port", "rdzv_backend", "rdzv_endpoint"), _GIVEN),
    **dict.fromkeys(("rdzv_id", "rdzv_conf", "standalone"), _GIVEN),
}
_ACCELERATE = {
    **dict.fromkeys(("machine_rank", "main_process_ip", "main_process_port", "same_network"), _GIVEN),
    **dict.fromkeys(("multi_gpu", "cpu"), "which follows from use_gpu"),
}
_FLAGS = ("standalone", "same_network", "multi_gpu", "cpu")
_USUAL = {"mixed_precision": "no", "dynamo_backend": "no"}
"""Options of accelerate's that have these values in Warmband's command, too."""


def trainer_of(sweep: Sweep, parameters: Parameters) -> dict[str, Any]:
    """The trainer of a job file; empty where the command is refused.

    Args:
        sweep: notes and problems are left in it.
        parameters: of the sweep.
    """
    command = command_line_of(sweep)
    if command is None or not _check_program(sweep, command):
        return {}
    _say_arguments(sweep, command)
    for name in command.static:
        if name in parameters.keys:
            where = dotted(parameters.keys[name])
            sweep.refuse(COMMAND, f"command has --{name}, as {where} has; leave one of them out")
    launched = _launched(sweep, command)
    hyperparameters = doubled({**command.static, **parameters.constants})
    arguments = ARGUMENTS.get(command.arguments)
    return {
        "type": "script",
        "entry_point": command.program,
        "launcher": launched.pop("launcher"),
        "num_workers": launched.pop("num_workers", 1),
        **launched,
        **({"arguments": arguments} if arguments else {}),
        **({"environment": command.environment} if command.environment else {}),
        **({"hyperparameters": hyperparameters} if hyperparameters else {}),
    }


def _check_program(sweep: Sweep, command: CommandLine) -> bool:
    program, keys = command.program, ("program",) if "program" in sweep.values else COMMAND
    before = len(sweep.problems)
    if PurePath(program).is_absolute():
        text = f"program is {shown(program)}; give a path from the folder that hpo tune is started in"
        sweep.refuse(keys, text)
    elif _starts_python(command.before[-1:]) and not program.endswith(".py"):
        sweep.refuse(keys, f"program is {shown(program)}, which Python starts; give a file that ends in .py")
    elif command.before[-1:] == ["-m"]:
        sweep.refuse(COMMAND, "command starts a module by -m, and a job file names a file; give program: FILE.py")
    return len(sweep.problems) == before


def _say_arguments(sweep: Sweep, command: CommandLine) -> None:
    if not command.arguments:
        sweep.note(
            COMMAND,
            "command has no ${args}: W&B gives the program its hyperparameters by wandb.config; Warmband gives them as "
            "--name value, and in the JSON file that WARMBAND_HYPERPARAMETERS names",
        )
    for name, value in command.static.items():
        sweep.note(COMMAND, f"command has {name} {shown(value)}: it is a static hyperparameter")
    if command.arguments in ARGUMENTS:
        sweep.note(COMMAND, f"${{{command.arguments}}} is arguments: {shown(ARGUMENTS[command.arguments])}")
    if command.flags:
        words = shlex.join(command.flags)
        sweep.note(COMMAND, f"command has {words}: it stands behind all hyperparameters, in launcher")


def _launched(sweep: Sweep, command: CommandLine) -> dict[str, Any]:
    """The launcher and how many processes it starts."""
    words = ["python" if word == "${interpreter}" else word for word in command.before]
    if _starts_python(words) and words[1:2] == ["-u"]:
        words = [words[0], *words[2:]]  # Warmband sets PYTHONUNBUFFERED.
    if _starts_python(words) and words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES:
        words = [*_MODULES[words[2]], *words[3:]]
    if not words or (_starts_python(words) and len(words) == 1):
        return {"launcher": " ".join(["{program}", *_quoted(command.flags)]) if command.flags else "python"}
    named = None if command.flags else _named(sweep, words)
    if named is not None:
        return named
    placeholder = "{script}"
    if len(words) > 1 and _starts_python(words[-1:]):
        words, placeholder = words[:-1], "{program}"
    launcher = " ".join([*_quoted(words), placeholder, *_quoted(command.flags)])
    sweep.note(COMMAND, f"each worker starts this command line: {launcher}")
    return {"launcher": launcher}


def _named(sweep: Sweep, words: Sequence[str]) -> dict[str, Any] | None:
    """A launcher by its name; None where Warmband's has not all that these words ask for."""
    name = PurePath(words[0]).name
    if name == "torchrun":
        given, dropped = _options(words[1:], _TORCHRUN)
        asked = ("nnodes", "nproc_per_node")
    elif name == "accelerate" and words[1:2] == ["launch"]:
        given, dropped = _options(words[2:], _ACCELERATE)
        asked = ("num_machines", "num_processes")
    else:
        return None
    if given is None or any(_USUAL.get(key) != value for key, value in given.items() if key not in asked):
        return None
    counts = [given.get(key, "1") for key in asked]
    if not all(re.fullmatch(r"[1-9]\d*", count) for count in counts):
        return None
    workers, processes = map(int, counts)
    if name == "accelerate":  # It counts those of all machines.
        if processes % workers:
            return None
        processes //= workers
    sweep.note(COMMAND, f"the launcher is {name}: num_workers {workers}, processes_per_worker {processes}")
    for option, why in dropped.items():
        sweep.note(COMMAND, f"command has --{option}, {why}")
    return {"launcher": name, "num_workers": workers, **({"processes_per_worker": processes} if processes > 1 else {})}


def _options(words: Sequence[str], without: Mapping[str, str]) -> tuple[dict[str, str] | None, dict[str, str]]:
    """Options of a launcher, and those that it is given anyway; None where a word is no option with a value."""
    found: dict[str, str] = {}
    dropped: dict[str, str] = {}
    left = list(words)
    while left:
        option, equals, value = left.pop(0).partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or (not equals and name not in _FLAGS and not left):
            return None, {}
        if not equals and name not in _FLAGS:
            value = left.pop(0)
        if name in without:
            dropped[name] = without[name]
        else:
            found[name] = value
    return found, dropped


def _starts_python(words: Sequence[str]) -> bool:
    return bool(words) and (words[0] == "${interpreter}" or bool(_PYTHON.fullmatch(PurePath(words[0]).name)))


def _quoted(words: Sequence[str]) -> list[str]:
    """Words as a launcher's command line has them: what looks like a placeholder is none."""
    return [shlex.quote(re.sub(r"\{(\w+)\}", r"{{\1}}", word)) for word in words]
