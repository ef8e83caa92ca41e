"""A worker's output, found where Ray has put it."""

from __future__ import annotations

import inspect
from pathlib import Path

from ray._private import log_monitor

from trainers.gangs.worker.output import found


def test_what_ray_has_moved_is_found_beside(tmp_path: Path) -> None:
    """As Ray's log monitor does it; a file that is nowhere keeps the name that it had."""
    logs, old = tmp_path / "logs", tmp_path / "logs" / "old"
    old.mkdir(parents=True)
    named = f"10.0.0.7:{logs}/worker-1.err"
    assert found(named) == ("10.0.0.7", logs / "worker-1.err")
    (old / "worker-1.err").touch()
    assert found(named) == ("10.0.0.7", old / "worker-1.err")
    (logs / "worker-1.err").touch()
    assert found(named) == ("10.0.0.7", logs / "worker-1.err")
    assert '"old"' in inspect.getsource(log_monitor), "Ray moves them to another folder now"
