"""Every trial as a line across its hyperparameters."""

from hpo.report.pictures.parallel import MOST_LINES, parallel_coordinates
from tests.support.records import made_up
from tests.support.refusals import mentions


def test_of_many_trials_some_are_drawn_and_the_note_says_so():
    figure = parallel_coordinates(made_up(trials=400, resource=9))
    mentions(figure.note, MOST_LINES)
    lines = [trace for trace in figure.interactive.data if trace.mode == "lines"]
    assert all(len(trace.y) <= MOST_LINES * 9 for trace in lines)
    (axes,) = figure.still().axes
    assert len(axes.lines) <= 5 * MOST_LINES + 1
