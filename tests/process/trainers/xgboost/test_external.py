"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.external_rows import order, program
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.processes import ROOT
from tests.support.trainers.xgboost.external import KINDS, of_kind, rows_of
from trainers.gangs.messages import Segment

pytestmark = pytest.mark.usefixtures("scratch")


def test_a_gang_trains_what_it_does_in_memory_and_again(pair: ProcessGang, folder: Path) -> None:
    found = {}
    for external in (False, True):
        answers = pair.run(program(folder, external=external), order(folder, max_bin=64), order(folder, max_bin=32))
        for answer in answers:
            assert all(isinstance(segment, Segment) for segment in answer), answer
        found[external] = [[segment.reports for segment in answer] for answer in answers]
    assert found[True] == found[False]


def test_what_a_killed_worker_left_goes_with_the_next(folder: Path, scratch: Path) -> None:
    code = (
        "import os, signal\n"
        "from trainers import Channel, ScalingConfig, XGBoostTrainer\n"
        "from trainers.gangs.in_process import alone\n"
        "trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), external_memory=True, hyperparameters="
        "{'objective': 'binary:logistic', 'eval_metric': 'auc'})\n"
        f"channel = Channel.of({str(folder / 'train.parquet')!r}, target='y', name='train')\n"
        "program = trainer.program({'train': channel.place(0)})\n"
        "program.open(alone(1))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(scratch)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(scratch.rglob("*.page"))
    serve_alone(program(folder)(), order(folder))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("kind", ["categories", "queries", "libsvm"])
def test_a_gang_reads_them_from_disk_too(pair: ProcessGang, folder: Path, kind: str) -> None:
    opened = {part: rows_of(kind, folder, part) for part in ("train", "validation")}
    found = {}
    for external in (False, True):
        answers = pair.run(of_kind(kind, opened, external=external), order(folder, **KINDS[kind]))
        assert all(isinstance(segment, Segment) for [segment] in answers), answers
        found[external] = [segment.reports for [segment] in answers]
    assert found[True] == found[False]
