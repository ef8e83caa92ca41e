"""Processes and whole clusters killed in the middle of a job: `hpo resume`, from another process, ends it alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run as hpo
from tests.support.driving import Counting, answer
from tests.support.heads import head  # noqa: F401  # A fixture.
from tests.support.refusals import mentions
from tests.support.resuming import DIGITS, torch_tuner

pytestmark = pytest.mark.fault


TORCH_SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    from tests.support.driving import Counting
    from tests.support.resuming import DIGITS, torch_tuner

    counting = Counting(7, lambda: os.kill(os.getpid(), signal.SIGKILL))
    torch_tuner(Path(sys.argv[1]), (counting,)).fit(DIGITS, job_name="job")
"""


def torch_killed(folder: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(TORCH_SCRIPT), str(folder)], timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL


def torch_terminated(folder: Path) -> None:
    counting = Counting(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        torch_tuner(folder, (counting,)).fit(DIGITS, job_name="job")
    assert ended.value.code == 143


@pytest.fixture(scope="module")
def expected_of_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    torch_tuner(folder).fit(DIGITS, job_name="whole")
    return answer(folder, "whole")


@pytest.mark.parametrize("end", [torch_killed, torch_terminated])
def test_pytorch_goes_on_to_the_same_bytes(
    expected_of_torch: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    end: Callable[[Path], None],
) -> None:
    end(tmp_path)
    store = f"sqlite:///{tmp_path}/record.db"
    assert hpo(monkeypatch, "resume", "job", "--store", store) == 2
    mentions(capsys.readouterr().err, "--allow-code")
    assert hpo(monkeypatch, "resume", "job", "--store", store, "--allow-code") == 0
    assert answer(tmp_path, "job") == expected_of_torch
