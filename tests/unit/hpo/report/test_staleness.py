"""Histograms of staleness."""

import re
from dataclasses import replace

import pytest

from hpo.report.pictures.workers import mean, staleness, staleness_histograms
from tests.support.records import made_up
from tests.support.refusals import mentions


def test_pushes_of_a_mode_are_added_up_over_its_trials():
    data = made_up(trainer="ParameterServerTrainer")
    found = staleness(data)
    assert list(found) == ["async", "bounded", "sync"]
    pushes = sum(sum(trial.details["parameter_server"]["staleness"].values()) for trial in data.trials if trial.details)
    assert sum(sum(histogram.values()) for histogram in found.values()) == pushes
    assert list(found["async"]) == [0, 1, 2, 3, 4, 7]
    assert mean({0: 1, 1: 1, 4: 2}) == 2.25


def test_jobs_without_servers_have_no_such_picture():
    assert staleness_histograms(made_up()) is None


def test_no_staleness_is_said_to_be_none():
    data = made_up(trainer="ParameterServerTrainer")
    fresh = {"parameter_server": {"mode": "sync", "staleness": {"0": 10}, "clock": "simulated"}}
    figure = staleness_histograms(replace(data, trials=tuple(replace(trial, details=fresh) for trial in data.trials)))
    mentions(figure.title, "push")
    assert not re.search(r"\d", figure.title), "no number of updates"
    mentions(figure.note, "simulated")


def test_both_forms_show_parts_of_all_pushes():
    figure = staleness_histograms(made_up(trainer="ParameterServerTrainer"))
    mentions(figure.title, "async", 2.93)
    assert [sum(trace.y) for trace in figure.interactive.data] == pytest.approx([1, 1, 1])
    (axes,) = figure.still().axes
    assert [text.get_text().split(" ")[0] for text in axes.get_legend().get_texts()] == ["async", "bounded", "sync"]
    assert sum(patch.get_height() for patch in axes.patches) == pytest.approx(3)
