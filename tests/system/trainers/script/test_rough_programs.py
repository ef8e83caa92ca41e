"""Programs that treat their folders, processes, steps and links as nobody expects: none hangs, and errors say why."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.refusals import refuses
from tests.support.script_programs import assignment, values
from tests.support.trainers.script.rough_programs import trainer
from trainers import TrialError


@pytest.mark.parametrize(
    ("text", "mode", "reason", "remedy"),
    [
        ("#!/bin/sh\necho acc=0.1\n", 0o755, 0, ""),
        ("#!/bin/sh\necho acc=0.1\n", 0o644, errno.EACCES, "chmod +x"),
        ("echo acc=0.1\n", 0o755, errno.ENOEXEC, "#!/bin/sh"),
        ("#!/no/shell\n", 0o755, errno.ENOENT, "#!"),
    ],
)
def test_a_program_that_is_no_python_is_run_as_it_is(
    tmp_path: Path, text: str, mode: int, reason: int, remedy: str
) -> None:
    from trainers.gangs.in_process import alone

    program = trainer(tmp_path, "train.sh", text, mode).program({})
    program.open(alone(1))
    try:
        if reason:
            with refuses(TrialError, field="./train.sh", value=os.strerror(reason), remedy=remedy):
                program.train(assignment(tmp_path, 1), print)
        else:
            assert values(program.train(assignment(tmp_path, 1), print)) == [(1, 0.1)]
    finally:
        program.close()
