"""Settings of a program that all of its gang's workers have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainers.script.arguments import Arguments
from trainers.script.launchers import LauncherOptions
from trainers.script.lengths import ProgramLength
from trainers.script.metric_lines import MetricDefinitions
from trainers.script.program_options import ProgramOptions
from trainers.script.steps import StepCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """A trainer's settings for its program.

    Args:
        entry_point: the program, relative to its source folder.
        source: the source folder, as an archive.
        launcher: starts it.
        options: of the launcher.
        definitions: its metrics.
        metric_files: globs of files that it writes metrics to.
        environment: variables beside SageMaker's.
        processes: of the program, on each worker.
        gpus: GPUs of each worker.
        steps: its step counter.
        length: says how many units a configuration trains until the program ends by itself.
        arguments: how its hyperparameters are written.
        declared: the options that its source declares.
        working_dir: where it runs: an absolute path, or one from the copy of its source folder on.
        keep_loaded: whether it stays loaded between assignments.
        logs: the folder of all logs of programs, as the driver has it; empty for the worker's own.
        report_timeout_s: seconds to a report.
        grace_period_s: seconds between SIGTERM and SIGKILL.
    """

    entry_point: str
    source: bytes
    launcher: str
    options: LauncherOptions
    definitions: MetricDefinitions
    metric_files: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1
    gpus: int = 0
    steps: StepCounter = field(default_factory=StepCounter)
    length: ProgramLength = field(default_factory=ProgramLength)
    arguments: Arguments = field(default_factory=Arguments)
    declared: ProgramOptions = field(default_factory=ProgramOptions)
    working_dir: str = ""
    keep_loaded: bool = False
    logs: str = ""
    report_timeout_s: float
    grace_period_s: float
