"""Commands on whose a job is, where it runs and what it printed, and on jobs that are to be deleted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hpo.record.store import Store
from tests.support.hpo.cli.whereabouts import placed
from tests.support.refusals import mentions
from tests.support.terminals import terminal_of

ROOT = Path(__file__).resolve().parents[4]


def test_a_job_that_goes_on_elsewhere_while_the_question_waits_keeps_its_files(store: Store, tmp_path: Path) -> None:
    placed(store, "gone", log=str(tmp_path / "gone.log"))
    store.update_job("gone", spec={**store.job("gone").spec, "storage_path": str(tmp_path)})
    for file in (tmp_path / "gone.log", tmp_path / "gone" / "model"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    command = [sys.executable, "-m", "hpo", "delete", "gone"]
    with terminal_of(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.read_until("[y/N]", 60.0)
        with store.writer("gone"):
            terminal.press(b"y\n")
            terminal.read_until(None, 60.0)
    assert terminal.process.wait(60) == 2
    mentions(terminal.seen, "'gone'", f"process {os.getpid()}")
    assert (tmp_path / "gone.log").exists()
    assert (tmp_path / "gone" / "model").exists()
    assert store.trials("gone")
