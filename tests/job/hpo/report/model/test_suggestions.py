"""Suggestions: what the model expected when it suggested a trial, as the record has it, against what came."""

from __future__ import annotations

from hpo.report.model import model_figures
from hpo.report.model.suggestions import FEWEST, MOST, expected_and_measured
from tests.support.hpo.report.model.suggestions import modelled
from tests.support.records import large, made_up
from tests.support.refusals import mentions


def test_the_page_has_it_where_a_model_suggested_enough() -> None:
    data = made_up(trials=30)
    assert expected_and_measured(data) is None  # An older record's.
    assert expected_and_measured(modelled(data, first=30)) is None
    assert expected_and_measured(modelled(data, first=30 - FEWEST + 1)) is None
    assert "suggestions" in [figure.name for figure in model_figures(modelled(data))]


def test_of_many_trials_some_are_shown() -> None:
    figure = expected_and_measured(modelled(large()))
    assert figure is not None
    mentions(figure.note, MOST)
    assert sum(len(trace.x) for trace in figure.interactive.data if trace.showlegend is not False) == MOST
