"""The picture of a job, from a record filled by hand; no Ray, no training."""

import pytest
import typer

from experiments.picture import draw, main
from hpo.hyperband import lay_out
from hpo.store import JobRow, ReportRow, Store, TrialRow

JOB = JobRow(
    name="by-hand",
    created_at=1.0,
    heartbeat=1.0,
    spec={
        "objective_metric_name": "validation:auc",
        "objective_type": "Maximize",
        "objective_value": "last",
        "estimator": {"trainer": "XGBoostTrainer"},
    },
    plan=lay_out(4, 1, 9).to_json(),
)
LENGTHS = {"untuned": 9, "t0": 9, "t1": 1, "t2": 1, "t3": 3}
TRIALS = [
    TrialRow(
        job="by-hand",
        trial_id=trial,
        number=number,
        status="Completed" if length == 9 else "Stopped",
        bracket=0 if number >= 0 else None,
        resource=length,
        objective=0.5 + 0.01 * length,
    )
    for number, (trial, length) in enumerate(LENGTHS.items(), start=-1)
]
REPORTS = [
    ReportRow(job="by-hand", trial_id=trial, step=step, objective=0.5 + 0.01 * step, at=1.0)
    for trial, length in LENGTHS.items()
    for step in range(1, length + 1)
]


def test_every_trial_is_a_line_that_ends_where_it_was_stopped():
    (axes,) = draw(JOB, TRIALS, REPORTS).axes
    assert [line.get_xdata()[-1] for line in axes.lines] == list(LENGTHS.values())
    assert axes.get_title(loc="left") == "by-hand: 4 trials used 14 of 36 possible boosting rounds (39%)"
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"the best trial: 0.5900", "un-tuned: 0.5900"} <= set(texts)


def test_a_job_that_has_just_begun_can_be_drawn():
    (axes,) = draw(JOB, [TrialRow(job="by-hand", trial_id="t0", number=0, bracket=0)], []).axes
    assert len(axes.lines) == 1
    (axes,) = draw(JOB, [], []).axes
    assert not axes.lines


def test_what_is_not_finite_is_a_gap():
    reports = [ReportRow(job="by-hand", trial_id="t0", step=step, at=1.0) for step in (1, 2)]
    (axes,) = draw(JOB, [TRIALS[1]], reports).axes
    assert len(axes.lines[0].get_xdata()) == 2


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_command_draws_from_the_store(home, tmp_path, suffix):
    with Store() as store:
        store.create_job(JOB)
        with store.writer(JOB.name) as writer:
            for trial in TRIALS:
                writer.trial(trial)
            writer.report(*REPORTS)
    file = tmp_path / f"picture.{suffix}"
    main("by-hand", file)
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("job", "file", "said"), [("by-hnad", "x.svg", "no job named"), ("by-hand", "x.gif", r"\.png")]
)
def test_what_cannot_be_drawn_is_a_usage_error(home, tmp_path, job, file, said):
    with pytest.raises(typer.BadParameter, match=said):
        main(job, tmp_path / file)
