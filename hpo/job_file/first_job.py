"""A first job file for a program: its options, length, metrics and folders as its source has them, with comments."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpo.job_file import yaml_file
from hpo.job_file.reading import check_made
from hpo.yaml_core import flow
from trainers.errors import ConfigurationError
from trainers.script import (
    LENGTHS,
    PrintedMetric,
    ProgramOption,
    ProgramOptions,
    Source,
    config_folders,
    folder_of,
    launcher_of,
    length_of,
    of_source,
    options_in_help,
    printed_metrics,
)

HELP_SECONDS = 60.0
"""How long a program may take to print its help."""
MOST_UNITS = 10
"""Units of a full trial where the source does not tell the program's length."""
_TRIALS = 20

_RATES = re.compile(r"(^|[._-])(lr|learning_?rate|eta|base_lr|lrate)([._-]|$)", re.IGNORECASE)
_SIZES = re.compile(r"batch_?size|hidden|width|units|n_?embd|num_?layers|d_?model|max_depth|num_leaves", re.IGNORECASE)
_SCHEDULES = re.compile(
    r"schedul|min|max|step|size|gamma|decay|warm|epoch|patience|power|policy|factor|cycle|end|final"
)
_NOT_SIZES = re.compile(r"test|eval|val|img|image|input|crop|frame|screen|video")
_NOT_TUNED = re.compile(
    r"seed|worker|thread|port|rank|world|node|gpu|device|backend|accelerator|log|print|interval|freq|save|eval|test|"
    r"start|resume|class|len|shape|image|img|samples|job|task|mode|model|arch|dataset|data\b|level|format|version|"
    r"precision|every|verbos|debug|tokenizer|lang",
    re.IGNORECASE,
)
"""Names of options that a search leaves alone where no better one is known."""
_SHARES = {
    "dropout": (0.0, 0.5),
    "momentum": (0.5, 0.99),
    "gamma": (0.5, 0.99),
    "subsample": (0.5, 1.0),
    "label_smoothing": (0.0, 0.2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """A program and all that was found in it."""

    source_dir: str
    entry_point: str
    options: ProgramOptions
    metrics: Sequence[PrintedMetric]
    launcher: str
    folder: Path


def job_of_program(path: str | Path, *, run_help: bool = False) -> str:
    """Return the text of a commented job file for a program.

    Args:
        path: the program's file.
        run_help: also run the program with `--help`, for options that its source does not tell.

    Raises:
        ConfigurationError: it is no Python file, cannot be read, or nothing in it can be tuned.
    """
    program = _program(Path(path), run_help=run_help)
    text = "".join(f"{line}\n" for line in _lines(program))
    check_made(yaml_file.parsed(text, "that the program comes to"))
    return text


def _program(path: Path, *, run_help: bool) -> _Program:
    if not path.is_file():
        raise ConfigurationError(f"--from is {str(path)!r}, and there is no such file; give the path of a program")
    folder, entry_point = path.parent, path.name
    here = Path.cwd()
    if path.resolve().is_relative_to(here):
        whole = Source.read(here, os.path.relpath(path, here))
        inside = all(each.path.resolve().is_relative_to(path.parent.resolve()) for each in whole.modules)
        if not inside:
            folder, entry_point = Path("."), os.path.relpath(path, here)
    source = Source.read(folder, entry_point)
    apart = [each for each in config_folders(source) if not each.resolve().is_relative_to(folder.resolve())]
    if apart:  # The program's copy needs the folder of its configuration, too.
        root = os.path.commonpath([folder.resolve(), *(each.resolve() for each in apart)])
        folder, entry_point = Path(os.path.relpath(root)), os.path.relpath(path, root)
        source = Source.read(folder, entry_point)
    if not source.modules and not run_help:
        raise ConfigurationError(
            f"--from is {str(path)!r}, which cannot be read as Python; give a .py file, or --run-help too"
        )
    options = of_source(source)
    if run_help:
        options = _with_help(options, folder, entry_point)
    return _Program(
        source_dir=str(folder),
        entry_point=entry_point,
        options=options,
        metrics=printed_metrics(source),
        launcher=launcher_of(source),
        folder=folder,
    )


def _with_help(options: ProgramOptions, folder: Path, entry_point: str) -> ProgramOptions:
    """The options of the source, and those that the program's help has beside them."""
    command = [sys.executable, entry_point] if entry_point.endswith(".py") else [f"./{entry_point}"]
    try:
        done = subprocess.run(
            [*command, "--help"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=HELP_SECONDS,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"--run-help: {entry_point} --help did not end well: {error}; leave --run-help out"
        ) from None
    text = done.stdout.decode(errors="replace")
    more = [each for each in options_in_help(text) if options.find(each.name) is None]
    if not more and not options.options:
        last = " ".join(text.split())[-200:]
        raise ConfigurationError(
            f"--run-help: {entry_point} --help ended with code {done.returncode} and named no option: {last!r}; write "
            "the hyperparameters yourself: hpo init"
        )
    return replace(options, options=(*options.options, *more))


# ---- the text


def _lines(program: _Program) -> Iterator[str]:
    named = [each for each in program.options.options if each.kind != "group"]
    length = length_of(named)
    metric = program.metrics[0] if program.metrics else None
    yield f"# A tuning job of {program.entry_point}, as hpo init --from read it. Lines with CHECK are guesses."
    yield "# The program is code of yours, so it runs with: hpo tune FILE --allow-code"
    yield ""
    yield "trainer:"
    yield "  type: script"
    yield f"  entry_point: {_value(program.entry_point)}"
    if program.source_dir != ".":
        yield f"  source_dir: {_value(program.source_dir)}"
    told = {"python": "one process a worker"}.get(program.launcher, "CHECK: what its source uses")
    yield f"  launcher: {program.launcher:<18}# {told}"
    yield "  num_workers: 1                # processes that train one trial together"
    if length is not None and _name(length) not in LENGTHS:
        yield f"  length: {_value(_name(length)):<22}# CHECK: how long a trial trains"
    yield from _arguments(program.options)
    yield from _hyperparameters(program, named, length)
    yield from _metrics(program.metrics)
    yield ""
    yield "tuning:"
    name = metric.name if metric else "accuracy"
    yield f"  objective_metric_name: {_value(name)}"
    yield f"  objective_type: {'Minimize' if metric and metric.smaller_is_better else 'Maximize'}"
    yield "  strategy: Hyperband           # stops trials that fall behind"
    if length is None:
        yield "  hyperband:"
        yield f"    max_resource: {MOST_UNITS:<13}# CHECK: how often the program reports the objective in a full trial"
    yield f"  max_jobs: {_TRIALS}"
    yield "  max_parallel_jobs: 1"
    yield "  random_seed: 1"
    yield "  ranges:                       # what to tune"
    chosen = _ranges(named, length)
    if not chosen:
        raise ConfigurationError(
            f"{program.entry_point} has no option with a number to tune that its source tells; give --run-help to ask "
            "its --help too, or write the job file yourself: hpo init"
        )
    known = any(_range(option) for option, _ in chosen)
    for option, bounds in chosen:
        about = _about(option) if known else f"  # CHECK: a guess{_about(option).replace('  #', ':')}"
        yield f"    {_value(_name(option))}: {bounds}{about}"


def _arguments(options: ProgramOptions) -> Iterator[str]:
    if options.style:
        yield f"  arguments: {options.style:<19}# as Hydra and OmegaConf read them"
    elif not options.options and options.variables and not options.reads_words:
        yield "  arguments: environment        # it reads variables of its environment"


def _hyperparameters(
    program: _Program, options: Sequence[ProgramOption], length: ProgramOption | None
) -> Iterator[str]:
    fixed: list[str] = []
    ranges = {each.name for each, _ in _ranges(options, length)}
    for option in options:
        name, folder = _value(_name(option)), _folder(program, option)
        if option is length:
            fixed.append(
                f"    {name}: {_shown(option.default if _whole(option.default) else MOST_UNITS)}  # the length"
            )
        elif option.name in ranges:
            continue
        elif folder:
            fixed.append(f"    {name}: {_value(folder)}{_about(option) or '  # what is written there is kept'}")
        elif option.required:
            given = _shown(_example(option))
            fixed.append(f"    {name}: {given}  # CHECK: the program requires it{_about(option).replace('  #', ':')}")
        else:
            fixed.append(f"    # {name}: {_shown(option.default)}{_about(option)}")
    if fixed:
        some = any(not each.startswith("    #") for each in fixed)
        yield f"  {'' if some else '# '}hyperparameters:             # the same in every trial; behind # are defaults"
        yield from fixed


def _metrics(metrics: Sequence[PrintedMetric]) -> Iterator[str]:
    if not metrics:
        yield "  metric_definitions:           # CHECK: no line was found that prints a metric"
        yield "    - {Name: accuracy, Regex: 'accuracy[=: ]+(?P<value>[-+0-9.e]+)'}"
        return
    yield "  metric_definitions:           # the first is the objective; a match of it is one unit"
    for metric in metrics[:6]:
        yield f"    # {metric.place}: {metric.line[:90]}"
        if metric.doubt:
            yield f"    # CHECK: {metric.doubt}"
        yield f"    - {{Name: {_value(metric.name)}, Regex: {_quoted(metric.regex)}}}"


def _ranges(options: Sequence[ProgramOption], length: ProgramOption | None) -> list[tuple[ProgramOption, str]]:
    """Options that are worth a search, with ranges around their defaults; the first numbers where none is known."""
    found = [(each, bounds) for each in options if each is not length and (bounds := _range(each))]
    if found:
        return found[:6]
    for option in options:
        if option is not length and _is_tunable(option) and _is_number(option.default) and option.default > 0:
            kind = "integer" if option.whole else "continuous"
            low, high = option.default / 2, option.default * 2
            ends = (max(1, int(low)), int(high)) if option.whole else (low, high)
            if ends[0] < ends[1]:
                return [(option, _bounds(kind, *ends))]
    choices = [each for each in options if len(each.choices) > 1 and _is_tunable(each)]
    return [(each, f"{{type: categorical, values: {_shown(list(each.choices))}}}") for each in choices[:1]]


def _folder(program: _Program, option: ProgramOption) -> str:
    """The placeholder of an option that names a folder of outputs; empty for others.

    A configuration's own null and interpolations stay as they are: other keys are made of them.
    """
    configured = bool(program.options.style)
    if configured and (option.default is None or "${" in str(option.default)):
        return ""
    return folder_of(option)


def _is_tunable(option: ProgramOption) -> bool:
    """Whether nothing in the name of an option says that it is no hyperparameter."""
    return option.kind in ("number", "choices") and not option.positional and not _NOT_TUNED.search(option.name)


def _range(option: ProgramOption) -> str:
    name, default = option.name.replace("-", "_"), option.default
    number = default if _is_number(default) and default > 0 else None
    last = name.rpartition(".")[2].lower()
    if option.kind not in ("number", "text") or option.positional or isinstance(default, str):
        return ""
    if _RATES.search(name) and not _SCHEDULES.search(last):
        middle = number or 1e-3
        return _bounds("continuous", middle / 10, middle * 10, "Logarithmic")
    if last in ("weight_decay", "wd", "l2"):
        middle = number or 1e-4
        return _bounds("continuous", middle / 10, middle * 10, "Logarithmic")
    if last in _SHARES and (number is None or number <= 1):
        return _bounds("continuous", *_SHARES[last])
    if _SIZES.search(last) and option.whole and number and not _NOT_SIZES.search(last):
        values = sorted({max(1, int(number) // 2), int(number), int(number) * 2})
        return f"{{type: categorical, values: {_shown(values)}}}"
    return ""


def _bounds(kind: str, low: float, high: float, scaling: str = "") -> str:
    ends = (low, high) if kind == "integer" else (float(f"{low:.3g}"), float(f"{high:.3g}"))
    scale = f", scaling: {scaling}" if scaling else ""
    return f"{{type: {kind}, min: {_shown(ends[0])}, max: {_shown(ends[1])}{scale}}}"


def _name(option: ProgramOption) -> str:
    """Return the name of an option in the job file: its word on the command line, else the program's own name."""
    return option.spelled(option.name).lstrip("-") if option.options else option.name


def _example(option: ProgramOption) -> Any:
    if option.default is not None:
        return option.default
    if option.choices:
        return option.choices[0]
    return {"number": 1, "switch": True, "list": []}.get(option.kind, "TODO")


def _about(option: ProgramOption) -> str:
    words = [option.help[:70]] if option.help else []
    if option.choices and option.choices != (True, False):
        words.append(f"one of {', '.join(map(str, option.choices))}"[:70])
    return f"  # {'; '.join(words)}" if words else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _shown(value: Any) -> str:
    """A value in YAML, on one line."""
    try:
        return _value(value)
    except (TypeError, ValueError):
        return "null"


def _value(value: Any) -> str:
    if isinstance(value, set | tuple):
        value = list(value)
    return " ".join(flow({"x": value})[len("{x: ") : -1].split())


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
