"""Lengths of programs: a hyperparameter that is named, a number of reports, and what is taken for none."""

from __future__ import annotations

from typing import Any

import pytest

from hpo.jobs.checks import inert_lengths, longest
from hpo.ranges import CategoricalParameter, IntegerParameter
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import ScalingConfig, ScriptTrainer, SeveralTrainers
from trainers.errors import ConfigurationError
from trainers.length import no_length
from trainers.script import StepCounter, program_length


@pytest.mark.parametrize(
    ("length", "values", "units"),
    [
        (None, {"epochs": 4}, 4),
        (None, {"num_train_epochs": 3.0, "lr": 1}, 3),
        (None, {"epochs": "4"}, 4),
        (None, {"epochs": "auto", "num_epochs": 5}, 5),
        (None, {"epochs": -1}, None),
        (None, {"epochs": 2.5}, None),
        (None, {"epochs": True}, None),
        (None, {"epochs": float("nan")}, None),
        (None, {"epochs": 10**400}, None),
        (None, {"epochs": None}, None),
        (None, {"num-epochs": 4}, None),
        (None, {"max_steps": 400}, None),
        (None, {"num_round": 4}, None),
        ("num-epochs", {"num-epochs": 4, "epochs": 7}, 4),
        ("train.epochs", {"train.epochs": 6}, 6),
        ("max_steps", {"max_steps": None}, None),
        (50, {"epochs": 4}, 50),
    ],
)
def test_what_says_how_many_reports_a_trial_has(length: Any, values: dict[str, Any], units: int | None) -> None:
    assert program_length(length).of(values) == units


def test_a_step_counter_turns_steps_into_reports() -> None:
    length = program_length("max_steps", StepCounter(first=0, every=100))
    assert length.of({"max_steps": 400}) == 5
    assert longest([length], {"max_steps": IntegerParameter(100, 900)}, {}) == 10
    assert longest([length], {"max_steps": CategoricalParameter([50, 250])}, {}) == 3
    assert program_length(5, StepCounter(first=0, every=100)).of({}) == 5


def test_a_length_that_is_none_is_refused() -> None:
    def made(length: Any, **values: Any) -> Any:
        return lambda: ScriptTrainer("train.py", length=length, hyperparameters=values)

    refuses_each(
        [
            (made(0), ("length", 0, "max_iters", 1)),
            (made(2.5), ("length", 2.5, "max_iters")),
            (made(True), ("length", True)),
            (made(""), ("length", "''")),
            (made(["epochs"]), ("length", ["epochs"])),
            (made("n", n="many"), ("'n'", "'many'", "length", 1)),
            (made("n", n=0), ("'n'", 0, "length", 1)),
            (made("n", n=1.5), ("'n'", 1.5, "length", 1)),
            (made("n", n=float("inf")), ("'n'", "inf", "length")),
        ],
        ConfigurationError,
    )


def test_a_name_that_is_no_hyperparameter_is_refused() -> None:
    length = program_length("num_epochs")
    length.check_given({"num_epochs": 1})
    with refuses(ConfigurationError, field="length", value="num_epochs", remedy="'num-epochs'"):
        length.check_given({"num-epochs": 4, "lr": 0.1})
    here = ScalingConfig(num_workers=0)
    several = SeveralTrainers(
        {
            "one": ScriptTrainer("a.py", scaling=here, length="n", hyperparameters={"n": 3}),
            "two": ScriptTrainer("b.py", scaling=here, length="iters"),
        }
    )
    assert several.lengths[0].names == ("one.n",)
    several.lengths[0].check_given(several.hyperparameters)
    with refuses(ConfigurationError, field=("length", "'two'"), value="iters"):
        several.lengths[1].check_given(several.hyperparameters)
    assert longest(several.lengths, {"two.iters": IntegerParameter(1, 9)}, several.hyperparameters) == 9


def test_the_remedy_names_what_may_be_the_length() -> None:
    given = {"lr": 0.1, "num-epochs": 4, "maxIters": 400, "eval_steps": 10, "warmup_epochs": 2, "name": "epochs"}
    said = mentions(no_length([program_length(None)], given), "length", "'num-epochs'", "'maxIters'")
    assert not any(word in said for word in ("eval_steps", "warmup", "num_round", "'name'"))


def test_a_tuned_length_of_a_program_is_no_setting_without_effect() -> None:
    tuned = {"epochs": IntegerParameter(1, 9)}
    (said,) = inert_lengths(program_length(None), tuned, {}, "Hyperband", 9)
    mentions(said, "epochs", "Hyperband", 9)
    assert "no effect" not in said
    (said,) = inert_lengths(program_length(None), {"num_epochs": IntegerParameter(1, 9)}, {"epochs": 4}, "", 4)
    mentions(said, "num_epochs", "epochs=4", "length")


def test_a_configuration_stays_as_the_program_received_it() -> None:
    trainer = ScriptTrainer("train.py", hyperparameters={"max_steps": 400})
    again = trainer.as_trained({"max_steps": 400, "lr": 0.1}, 5)
    assert (again.hyperparameters, again.units) == ({"max_steps": 400, "lr": 0.1}, 5)
    assert again.options["length"] == 5
    named = ScriptTrainer("train.py", hyperparameters={"max_steps": 400}, length="max_steps")
    assert named.as_trained({"max_steps": 400}, 5).to_json() == named.to_json()
    known = ScriptTrainer("train.py", hyperparameters={"epochs": 9})
    assert known.as_trained({"epochs": 9}, 3).to_json() == known.to_json()
