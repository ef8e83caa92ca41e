"""Configurations as YAML and Python: what is pasted is what was printed."""

from __future__ import annotations

from typing import Any

from ray.train import ScalingConfig

from hpo.observers.snippets import as_python
from tests.support.refusals import mentions
from trainers import TorchTrainer, TrainContext


def learn(context: TrainContext) -> None:
    """What a printed trainer trains."""


def test_a_function_can_be_pasted_too() -> None:
    def local(context: TrainContext) -> None:
        pass

    names: dict[str, Any]
    script = type(learn)(learn.__code__, {}, "learn")
    script.__module__ = "__main__"
    for function, names in ((learn, {}), (script, {"learn": script}), (local, {"local": local})):
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=2), precision="bf16")
        text = as_python(trainer.to_json())
        exec(text, names)
        assert names["trainer"].train_loop_per_worker is function, text
        assert names["trainer"].to_json() == trainer.to_json()
        assert "__main__" not in text
    comment = text.splitlines()[1]
    assert comment.startswith("#")
    mentions(comment, "local", "script")


def test_what_is_no_name_of_code_is_not_printed_as_code() -> None:
    state = {**TorchTrainer(learn).to_json(), "hyperparameters": {}}
    state["options"] = {"train_loop_per_worker": "os; import shutil:x"}
    assert "train_loop_per_worker='os; import shutil:x'" in as_python(state)
