"""Predictions: each trial from all others, as if its model had been fitted without it."""

from __future__ import annotations

from hpo.report import JobData
from hpo.report.model.belief import Belief
from hpo.report.model.predictions import agreement, left_out_predictions, predictions
from tests.support.records import large, made_up
from tests.support.refusals import mentions


def believed(data: JobData) -> Belief:
    belief = Belief.of(data)
    assert belief is not None
    return belief


def test_the_title_says_the_correlation_and_the_note_how_it_came_about() -> None:
    belief = believed(made_up(trials=30))
    figure = left_out_predictions(belief)
    assert figure is not None
    whole = agreement(predictions(belief))
    mentions(figure.title, f"{whole:.2f}")
    mentions(figure.note, "leave-one-out", "slices", "contours")
    many = left_out_predictions(believed(large()))
    assert many is not None
    assert len(many.note) > len(figure.note), "it says that not all trials taught the model"
