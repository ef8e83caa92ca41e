"""Configurations as YAML and Python: what is pasted is what was printed."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st
from ray.train import ScalingConfig

from hpo.observers.snippets import as_python, as_yaml
from hpo.yaml_core import load
from tests.support.refusals import mentions
from trainers import TorchTrainer, TrainContext

VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.booleans(), st.none(), st.text(max_size=30)
)


@settings(max_examples=50)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.one_of(VALUES, st.lists(VALUES, max_size=3))))
@example(
    {"a": "1e5", "b": "+.5e3", "c": "0o17", "d": "2026-01-31", "e": "yes", "f": "-.inf", "g": "~", "h": ["1", 1e-5]}
)
def test_values_come_back_as_they_were(values: dict[str, Any]) -> None:
    configuration = {"trainer": "dict", "scaling": {}, "hyperparameters": values}
    pasted = load(f"  hyperparameters:\n{as_yaml(configuration)}")["hyperparameters"]
    assert pasted == values
    assert [type(value) for value in pasted.values()] == [type(value) for value in values.values()]
    names: dict[str, Any] = {}
    exec(as_python(configuration).replace(", dict\n", "\n"), names)
    assert names["trainer"]["hyperparameters"] == values


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
