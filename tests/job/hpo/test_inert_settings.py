"""Settings that change nothing are warned of before the job starts: lengths, and a Hyperband that stops nothing."""

from __future__ import annotations

import io

from rich.console import Console

from hpo import HyperbandStrategyConfig, IntegerParameter, StrategyConfig
from tests.support.bad_input import RANGES, make, rows
from tests.support.refusals import missing_names


def warns(printed: str, *names: object) -> bool:
    """Whether a line is a warning with these names."""
    return any(not missing_names(line, "warning", *names) for line in printed.splitlines())


def test_the_warning_is_printed_before_the_job_starts() -> None:
    printed = io.StringIO()
    ranges = {**RANGES, "num_round": IntegerParameter(2, 50)}
    tuner = make(0, ranges=ranges, console=Console(file=printed, width=120))
    assert tuner.plan().max_resource == 9
    tuner.fit({"train": rows(), "validation-2": rows(), "validation": rows()})
    assert warns(printed.getvalue(), "num_round", 9)
    assert tuner.analytics().dataframe()["Resource"].max() == 9
    assert "validation-2:auc" in tuner.analytics().curve(tuner.best_training_job()).columns


def test_the_warning_that_nothing_is_stopped_is_printed_too() -> None:
    printed = io.StringIO()
    config = StrategyConfig(HyperbandStrategyConfig(5, 2))
    tuner = make(0, max_jobs=2, strategy_config=config, console=Console(file=printed, width=120))
    tuner.fit({"train": rows(), "validation": rows()})
    assert warns(printed.getvalue(), "Hyperband", 5, "max_resource")
