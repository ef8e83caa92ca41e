"""What a worker imports of this project: its half of a gang, and nothing of the driver's."""

from __future__ import annotations

from pathlib import Path

from tests.support.trainers.gangs.worker_imports import OF_DRIVERS


def test_every_module_that_only_a_driver_needs_is_there() -> None:
    """A name that no module has would be asked for in vain."""
    root = Path(__file__).resolve().parents[4]
    paths = [root / name.replace(".", "/") for name in OF_DRIVERS]
    assert not [path for path in paths if not path.is_dir() and not path.with_suffix(".py").is_file()]
