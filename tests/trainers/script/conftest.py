"""A gang's only worker with a program of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.train import ScalingConfig

from tests.support.script_programs import ACCURACY, PROGRAMS
from trainers import ScriptTrainer
from trainers.channels import open_channels
from trainers.gangs.in_process import alone
from trainers.script.program import ScriptProgram

ROWS = (np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6) % 2)


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """Opens the program of a trainer as a gang's only worker does; closes it in the end."""
    programs: list[ScriptProgram] = []

    def open_(source: str | None = None, **options: Any) -> ScriptProgram:
        folder = PROGRAMS
        if source is not None:
            folder = tmp_path / "source"
            folder.mkdir()
            for name, text in {**options.pop("files", {}), "train.py": source}.items():
                (folder / name).write_text(text)
        trainer = ScriptTrainer(
            options.pop("entry_point", "train.py"),
            source_dir=options.pop("source_dir", folder),
            scaling=ScalingConfig(num_workers=0),
            **{"metric_definitions": [ACCURACY], "report_timeout_s": 120, "grace_period_s": 5, **options},
        )
        placed = {name: channel.place(0) for name, channel in open_channels({"train": ROWS}).items()}
        program = trainer.program(placed)
        assert isinstance(program, ScriptProgram)
        program.open(alone(2))
        programs.append(program)
        return program

    yield open_
    for program in programs:
        program.close()
