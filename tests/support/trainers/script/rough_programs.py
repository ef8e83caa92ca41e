"""Trainers of one script."""

from __future__ import annotations

from pathlib import Path

from tests.support.script_programs import ACCURACY
from trainers import ScriptTrainer


def trainer(folder: Path, entry_point: str, text: str | None = "print()", mode: int = 0o755) -> ScriptTrainer:
    """Return the trainer of a program in its own folder."""
    source = folder / "code"
    source.mkdir()
    if text is not None:
        (source / entry_point).write_text(text)
        (source / entry_point).chmod(mode)
    return ScriptTrainer(entry_point, source_dir=source, metric_definitions=[ACCURACY])
