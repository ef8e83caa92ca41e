"""Findings of `hpo check` that need no program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hpo.jobs.trial_check import _Found
from tests.support.refusals import mentions
from trainers import ScriptTrainer
from trainers.details import WARNINGS
from trainers.errors import TrialError


def found() -> _Found:
    trainer = ScriptTrainer("train.py", metric_definitions=[{"Name": "acc", "Regex": r"acc=(\S+)"}])
    settings: Any = SimpleNamespace()
    return _Found(trainer=trainer, hyperparameters={}, channels={}, length=9, folder="x", settings=settings)


def test_a_warning_of_both_starts_is_said_once() -> None:
    made = found()
    details = {WARNINGS: {"printers": "worker 1 prints 'acc'"}}
    report = SimpleNamespace(step=1, metrics={})
    segment: Any = SimpleNamespace(details=details, reports=[report], training_seconds=1.0)
    made.segments = [segment, segment]
    assert made.result(["costs"]).warnings == ("costs", "worker 1 prints 'acc'")


def test_a_program_that_fails_is_told_by_its_last_lines_and_its_log() -> None:
    raised = 'Traceback (most recent call last):\n  File "program.py", line 1\nTrialError: train.py ended\nno disk\n'
    text = found()._told(TrialError("train.py ended", raised, "vm:/logs/check.log"))
    assert text.splitlines()[:2] == ["train.py ended", "no disk"]
    mentions(text, "vm:/logs/check.log")
