"""What objects show of themselves in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner, HyperparameterTuningJobAnalytics
from hpo.job_file.reading import read_job
from hpo.record.store import Store
from hpo.report.notebook import job_html
from tests.support.pages import Read
from tests.support.records import HOSTILE, made_up, write
from tests.support.refusals import mentions, missing_names
from trainers import TrainingResult, XGBoostTrainer
from trainers.gangs.messages import Report

BANK = Path(__file__).resolve().parents[4] / "experiments" / "bank-marketing.yaml"


@pytest.fixture
def record(home: Path) -> None:
    with Store() as store:
        write(store, made_up(name="bank", trials=20))
        write(store, made_up(name="evil", trials=20, hostile=True))


def shown(what: Any) -> Read:
    html = what._repr_html_() if hasattr(what, "_repr_html_") else what
    assert len(html) < 20_000
    read = Read(html)
    assert not {"script", "style", "img", "iframe"} & set(read.tags)
    return read


def test_a_tuner_shows_its_plan_and_ranges_before_it_runs() -> None:
    tuner: HyperparameterTuner = HyperparameterTuner(**read_job(BANK).arguments())
    cells = [text.strip() for text in shown(tuner).of("td")]
    mentions(shown(tuner).of("strong")[0], "Hyperband", "30 trials", 4)
    mentions(cells[cells.index("max_depth") + 1], 1, 10)
    assert [text for text in cells if not missing_names(text, 12, 1, 4, 3, 10, 30)]


@pytest.mark.usefixtures("record")
def test_a_job_shows_its_verdict_and_best_trials() -> None:
    analytics = HyperparameterTuningJobAnalytics("bank")
    read = shown(analytics)
    assert read.of("strong")[0] == "bank"
    assert any(not missing_names(text, "validation:auc") for text in read.of("p"))
    assert len([tag for tag in read.tags if tag == "tr"]) == 1 + 10
    best = analytics.dataframe().dropna(subset=["FinalObjectiveValue"]).nlargest(10, "FinalObjectiveValue")
    assert [text for text in read.of("td") if text.startswith("bank-")] == list(best["TrainingJobName"])


@pytest.mark.usefixtures("record")
def test_text_stays_text_here_too() -> None:
    read = shown(job_html("evil"))
    assert f"validation:{HOSTILE}" in read.of("th")


def test_the_result_of_a_training_shows_what_it_came_to() -> None:
    result = TrainingResult(
        metrics={"validation:auc": 0.78591234},
        reports=(Report(step=1, metrics={}), Report(step=2, metrics={})),
        checkpoint="/models/<b>",
        worker_seconds=12.34,
        training_seconds=10.0,
        trainer=XGBoostTrainer(),
        details={"parameter_server": {"mode": "</td><script>"}},
    )
    cells = shown(result).of("td")
    assert dict(zip(cells[::2], cells[1::2], strict=True)) == {
        "validation:auc": "0.785912",
        "units": "2",
        "billed": "12.3 worker-seconds",
        "checkpoint": "/models/<b>",
        "parameter_server": "{'mode': '</td><script>'}",
    }
