"""Jobs of programs whose booleans and lists are no words of `--name value`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ray.train import ScalingConfig

from hpo import CategoricalParameter, HyperparameterTuner
from trainers import ScriptTrainer

PROGRAMS = {
    "parse_known_args": """
import argparse
p = argparse.ArgumentParser(); p.add_argument("--epochs", type=int); p.add_argument("--flag", action="store_true")
p.add_argument("--sizes", nargs="+", type=int)
a = p.parse_known_args()[0]; flag, sizes = a.flag, a.sizes
""",
    "type=bool": """
import argparse
p = argparse.ArgumentParser(); p.add_argument("--epochs", type=int); p.add_argument("--flag", type=bool, default=True)
p.add_argument("--sizes", action="append", type=int)
a = p.parse_args(); flag, sizes = a.flag, a.sizes
""",
    "variables": """
import json, os
flag, sizes = os.environ["FLAG"] == "True", json.loads(os.environ["SIZES"])
""",
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_trains_with_what_the_record_says(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train.py").write_text(
        f"{PROGRAMS[kind]}\nprint('accuracy=%.2f' % (0.5 + 0.3 * flag + 0.01 * len(sizes)))"
    )
    trainer = ScriptTrainer(
        "train.py",
        source_dir=tmp_path,
        scaling=ScalingConfig(num_workers=0),
        hyperparameters={"epochs": 1, "sizes": [8, 16], "flag": False},
        metric_definitions=[{"Name": "accuracy", "Regex": r"accuracy=(\S+)"}],
    )
    tuner = HyperparameterTuner(
        trainer, "accuracy", {"flag": CategoricalParameter([True, False])}, strategy="Grid", console=False
    )
    tuner.fit()
    frame = tuner.analytics().dataframe()
    assert dict(zip(frame["flag"], frame["FinalObjectiveValue"], strict=True)) == {True: 0.82, False: 0.52}
