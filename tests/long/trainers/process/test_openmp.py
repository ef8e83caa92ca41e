"""libgomp in fresh processes: what its threads do while they wait, with a library before and after us; in a worker."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.support.trainers.process.openmp import fresh
from trainers.process.openmp import SPINS, VARIABLE

pytestmark = [pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc here")]


MODEL = """
    import hashlib
    from experiments.shared.blog import STATIC
    from ray.train import ScalingConfig
    from trainers import XGBoostTrainer
    from trainers.datasets import load
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 2})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, "num_round": 2, "subsample": 0.7})
    data = load("bank-marketing-synthetic")
    result = trainer.fit({"train": data.train, "validation": data.validation})
    print(json.dumps(hashlib.sha256(Path(result.checkpoint).read_bytes()).hexdigest()))
"""


def test_models_are_the_same_to_the_byte(home: Path) -> None:
    kept = {"WARMBAND_HOME": str(home)}
    spinning = fresh(MODEL, **kept, GOMP_SPINCOUNT="300000")
    assert fresh(MODEL, **kept) == spinning
    assert fresh("import xgboost\n" + textwrap.dedent(MODEL), **kept) == spinning, "calmed"


def test_a_worker_has_it_before_any_library(home: Path) -> None:
    """On a cluster whose processes do not have it: Ray was started by somebody else."""
    noted = home / "noted.json"
    home.mkdir()
    assert (
        fresh(
            f"""
        import ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        assert "{VARIABLE}" not in os.environ
        import numpy
        from ray.train import ScalingConfig
        from trainers import XGBoostTrainer
        from trainers.process import openmp
        from trainers.xgboost.program import XGBoostProgram

        class Noting(XGBoostProgram):
            def open(self, context):
                told = [os.environ.get("{VARIABLE}"), sorted(openmp.loaded()), os.getpid()]
                Path({str(noted)!r}).write_text(json.dumps(told))
                return super().open(context)

        class Trainer(XGBoostTrainer):
            def program(self, channels):
                return Noting(channels)

        static = {{"objective": "binary:logistic", "eval_metric": "auc", "num_round": 2}}
        rows = numpy.random.default_rng(0).random((60, 3)).round()
        trainer = Trainer(scaling=ScalingConfig(num_workers=1), hyperparameters=static)
        trainer.fit({{"train": rows, "validation": rows}})
        print(json.dumps(os.getpid()))
        ray.shutdown()
    """,
            WARMBAND_HOME=str(home),
        )
        != json.loads(noted.read_text())[2]
    )
    assert json.loads(noted.read_text())[:2] == [SPINS, []]
