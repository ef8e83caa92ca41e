"""What one worker holds over many trials that tune `max_bin`: rows once, and matrices of two values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.processes import printed

ROWS, COLUMNS, TRIALS = 100_000, 20, 20

CODE = """
    import json, sys
    from pathlib import Path
    from tests.support.assignments import assignment
    from trainers import Channel, ScalingConfig, XGBoostTrainer
    from trainers.gangs.in_process import alone

    file, external, trials = sys.argv[1], sys.argv[2] == "external", int(sys.argv[3])
    static = {"objective": "binary:logistic", "eval_metric": "auc"}
    scaling = ScalingConfig(num_workers=0)
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=static, external_memory=external)
    channels = {name: Channel.of(file, target="y", name=name).place(0) for name in ("train", "validation")}

    def held():
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

    import xgboost, pyarrow.parquet
    found = [held()]
    program = trainer.program(channels)
    program.open(alone(1))
    for trial in range(trials):
        order = assignment(hyperparameters={**static, "max_bin": 16 + 10 * trial}, stop=1, save_to=f"{file}.ubj")
        program.train(order, lambda report: None)
        found.append(held())
    program.close()
    print(json.dumps(found))
"""


@pytest.mark.parametrize("way", ["memory", "external"])
def test_a_worker_holds_no_more_after_twenty_values_of_max_bin_than_after_three(tmp_path: Path, way: str) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(ROWS, COLUMNS)).astype(np.float32)).rename(columns="x{}".format)
    frame.insert(0, "y", (frame["x0"] > 0).astype(np.float32))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=10_000)
    environment = {"TMPDIR": str(tmp_path)}
    held = json.loads(printed(CODE, str(tmp_path / "rows.parquet"), way, str(TRIALS), environment=environment))
    matrix = 3 * ROWS * COLUMNS
    # The rows that are scored are 8 bytes a number in memory; and labels, gradients and scores of both channels.
    rows = 8 * ROWS * COLUMNS * (way == "memory") + 2 * 40 * ROWS
    assert (
        max(held[3:]) - held[0] < rows + 2 * matrix * (way == "memory") + 64e6
    )  # Beside them what XGBoost and Arrow load and keep.
    assert max(held[-3:]) - max(held[3:6]) < matrix
