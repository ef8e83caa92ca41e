"""The picture of trials and those that they began from."""

from __future__ import annotations

from dataclasses import replace

from hpo.record.tables import TrialRow
from hpo.report.data import JobData
from hpo.report.page.sections import job_sections
from hpo.report.pictures.lineage import ancestry, lives, parents_and_forks
from tests.support.records import made_up
from tests.support.refusals import mentions


def trial(number: int, resource: int, value: float, parent: int = -1, at: int = 0, replaces: int = -1) -> TrialRow:
    return TrialRow(
        job="made-up",
        trial_id=f"made-up-{number:03d}",
        number=number,
        status="Completed",
        hyperparameters={"eta": 0.1, "kind": "<b>"},
        resource=resource,
        objective=value,
        best_objective=value,
        parent="" if parent < 0 else f"made-up-{parent:03d}",
        parent_resource=at,
        replaces="" if replaces < 0 else f"made-up-{replaces:03d}",
    )


def forked() -> JobData:
    trials = (
        trial(0, 9, 0.6),
        trial(1, 3, 0.2),
        trial(2, 6, 0.5),
        trial(3, 9, 0.7, parent=0, at=3, replaces=1),
        trial(4, 9, 0.9, parent=3, at=6, replaces=2),
    )
    return replace(made_up(trials=5, resource=9), trials=trials)


def test_a_fork_stands_where_the_trial_stood_that_ended_for_it() -> None:
    assert {life.trial.number: life.row for life in lives(forked())} == {0: 0, 1: 1, 3: 1, 2: 2, 4: 2}


def test_the_best_trials_ancestors_are_marked() -> None:
    data = forked()
    assert [trial.number for trial in ancestry(data)] == [4, 3, 0]
    assert {life.trial.number: life.used for life in lives(data) if life.leads} == {4: 9, 3: 6, 0: 3}


def test_both_forms_have_the_parts_of_each_trial_and_a_line_a_fork() -> None:
    figure = parents_and_forks(forked())
    assert figure is not None
    bars = [trace for trace in figure.interactive.data if trace.type == "bar"]
    lines = [trace for trace in figure.interactive.data if trace.type == "scatter"]
    assert sum(len(trace.y) for trace in bars) == 7
    assert sum(len(trace.x) for trace in lines) == 2 * 3
    assert {(base, length) for trace in bars for base, length in zip(trace.base, trace.x, strict=True)} == {
        (0, 3),  # Of trial 0 and, behind it, what nobody took over; trial 1.
        (3, 6),
        (0, 6),
        (3, 3),
        (6, 3),
    }
    assert [text for trace in bars for text in trace.text if text] == ["0", "3", "4", "1", "2"]
    (axes,) = figure.still().axes
    assert len(axes.patches) == 7
    assert len(axes.lines) == 2
    mentions(figure.title, "2 trials", "checkpoint", "trial 4", "trial 3", "trial 0")
    assert "<b>" not in "".join(text for trace in bars for text in trace.hovertext)


def test_a_job_without_forks_has_no_such_picture_and_one_with_them_says_whose_checkpoint_it_was() -> None:
    assert parents_and_forks(made_up(trials=5, resource=9)) is None
    sections = {section.title: section for section in job_sections(forked())}
    assert [block.name for block in sections["Parents and forks"].blocks] == ["lineage"]
    (table,) = sections["Trials"].blocks
    place = list(table.columns).index("began from")
    assert {row[0]: row[place] for row in table.rows}["made-up-004"] == "made-up-003 at 6"
