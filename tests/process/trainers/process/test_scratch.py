"""Temporary folders of processes that end, live, and are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import printed
from tests.support.trainers.process.scratch import temporary  # noqa: F401  # A fixture.
from trainers.process.scratch import Scratch

HOLD = """
from trainers.process.scratch import Scratch
scratch = Scratch("gang0")
print(scratch.path, flush=True)
input()
"""


@pytest.fixture
def holder(temporary):
    """Another process that has one."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True) as process:
        yield process
        process.kill()


def test_that_of_a_process_that_lives_stays_and_that_of_one_that_was_killed_goes(temporary, holder):
    folder = Path(holder.stdout.readline().strip())
    Scratch("gang1").close()
    assert folder.is_dir()
    holder.kill()
    holder.wait(30)
    assert folder.is_dir()
    Scratch("gang2").close()
    assert not folder.exists()


FULL = """
import resource, tempfile
from trainers.process.scratch import Scratch
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # As on a full disk: Python's own look at TMPDIR writes a little.
scratch = Scratch("rows")
print(scratch.path)
scratch.close()
"""


def test_it_is_where_tmpdir_says_also_on_a_full_disk(temporary):
    assert Path(printed(FULL).strip()).parent == temporary
    assert list(temporary.iterdir()) == []
