"""Suggestions: what the model expected when it suggested a trial, as the record has it, against what came."""

from __future__ import annotations

from dataclasses import replace

from hpo.report.model.suggestions import ENDED, RANDOM, STOPPED, expected_and_measured, suggestions
from tests.support.hpo.report.model.suggestions import modelled
from tests.support.records import made_up
from tests.support.refusals import mentions


def test_it_counts_what_came_within_the_intervals() -> None:
    data = modelled(made_up(trials=30))
    told = suggestions(data)
    valued = [trial for trial in data.trials if data.objective(trial) is not None]
    assert [each.trial for each in told] == valued
    assert [each.expected is None for each in told] == [trial.number < 6 for trial in valued]
    assert all(each.held == (0.6 <= each.measured <= 0.8) for each in told if each.expected)
    figure = expected_and_measured(data)
    assert figure is not None
    ended = [each for each in told if each.expected and each.ended]
    held = sum(each.held for each in ended)
    mentions(figure.title, len(ended), held, "80%")
    names = [trace.name for trace in figure.interactive.data if trace.showlegend is not False]
    assert names[:3] == [RANDOM, STOPPED, ENDED]
    assert figure.still() is not None


def test_of_repeats_it_shows_configurations_by_their_mean() -> None:
    data = modelled(made_up(trials=30, halving=False), repeats=3)
    told = suggestions(data)
    assert {each.trial.number % 3 for each in told} == {0}
    assert all(each.measured == data.means[each.trial.number] for each in told)
    figure = expected_and_measured(data)
    assert figure is not None
    mentions(figure.note, "configuration", "mean")


def test_without_values_of_its_own_a_model_s_scores_are_not_shown() -> None:
    data = made_up(trials=10)
    scores = {"by": "model", "results": 3, "score": 0.1, "deviation": 0.2, "spread": 0.3}  # All of earlier jobs.
    assert suggestions(replace(data, trials=tuple(replace(each, believed=scores) for each in data.trials))) == []
