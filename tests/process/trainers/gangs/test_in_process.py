"""Training in this very process: no Ray, the calling thread; that its models are a gang's is in test_gang."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.processes import printed

WITHOUT_RAY = """
    import os, pathlib
    import numpy as np
    import ray
    from ray.train import ScalingConfig
    from trainers import XGBoostTrainer

    rows = np.random.default_rng(0).random((200, 4)).round()
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0), hyperparameters={"num_round": 2, "eval_metric": "rmse"}
    )
    result = trainer.fit({"train": rows, "validation": rows})
    assert len(result.reports) == 2 and result.model().num_boosted_rounds() == 2
    assert not ray.is_initialized()
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    assert not children, children
    from xgboost import XGBRegressor
    XGBRegressor(n_estimators=1).fit(rows[:, 1:], rows[:, 0])
    print("done")
"""


def run(code: str, home: Path, typed: str = "") -> str:
    return printed(code, environment={**os.environ, "WARMBAND_HOME": str(home)}, typed=typed)


def test_neither_ray_nor_any_process_is_started_and_xgboost_stays_whole(home: Path) -> None:
    assert run(WITHOUT_RAY, home).strip() == "done"


UNDER_PDB = """
    import pdb
    import numpy as np
    from ray.train import ScalingConfig
    from trainers import XGBoostTrainer
    from trainers.xgboost.program import XGBoostProgram

    rows = np.random.default_rng(0).random((200, 4)).round()
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0), hyperparameters={"num_round": 2, "eval_metric": "rmse"}
    )
    debugger = pdb.Pdb(nosigint=True)
    debugger.set_break(XGBoostProgram._train.__code__.co_filename, XGBoostProgram._train.__code__.co_firstlineno + 3)
    debugger.runcall(trainer.fit, {"train": rows, "validation": rows})
    print("trained on")
"""


def test_a_breakpoint_in_training_stops_there(home: Path) -> None:
    printed = run(UNDER_PDB, home, typed="c\np assignment.stop\np type(self).__name__\nc\n")
    assert "(Pdb) 2\n" in printed
    assert "(Pdb) 'XGBoostProgram'\n" in printed
    assert "trained on" in printed
