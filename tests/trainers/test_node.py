"""A node that leaves its cluster properly: what it waits for, and what it says where it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainers import node
from trainers.node import leave, wait_until_empty

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0


def test_it_waits_until_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "LOOK_SECONDS", 0.0)
    held = [3.0, 1.0, 0.0]
    assert wait_until_empty(lambda: held.pop(0), time.monotonic() + DEADLINE)
    assert not held


def test_it_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "LOOK_SECONDS", 0.0)
    assert not wait_until_empty(lambda: 1.0, time.monotonic() - 1)


def test_a_node_that_cannot_be_drained_says_so_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    leave("/bin/false", "127.0.0.1:1", 5.0)
    assert "could not be drained and ends without notice" in capsys.readouterr().err


def test_sigterm_ends_what_ray_start_became(tmp_path: Path) -> None:
    """A `ray` that notes how it was called: started with the options behind --, asked to drain, then ended."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    notes = tmp_path / "notes"
    fake = bin_folder / "ray"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >>{notes}\n'
        f'[ "$1" = start ] || exit 1\ntrap "echo ended >>{notes}; exit 0" TERM\nwhile :; do sleep 0.05; done\n'
    )
    fake.chmod(0o755)
    (bin_folder / "python").symlink_to(sys.executable)
    code = (
        f"import sys; sys.executable = {str(bin_folder / 'python')!r}; from trainers.node import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "10.0.0.1:6379", "--grace", "5", "--", "--num-cpus=4"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + DEADLINE
    while not notes.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    started, drained, ended = notes.read_text().splitlines()
    assert started == "start --address=10.0.0.1:6379 --block --num-cpus=4"
    assert drained.startswith("drain-node --address=10.0.0.1:6379 --reason=DRAIN_NODE_REASON_PREEMPTION")
    assert ended == "ended"
    assert "could not be drained" in said
