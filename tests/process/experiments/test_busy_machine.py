"""The busy machine's works in their three ways, with a few rounds each, and what is made of their times."""

import subprocess

import pytest

from experiments.busy_machine import busy_processes


def test_busy_processes_end_with_the_block(monkeypatch: pytest.MonkeyPatch):
    started, start = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *given: started.append(start(*given)) or started[-1])
    with busy_processes(2):
        assert [process.poll() for process in started] == [None, None]
    assert all(process.returncode for process in started)
