"""The picture of learning curves, from a job laid out by hand and from made-up ones."""

from functools import partial

from hpo.report.pictures.curves import learning_curves
from tests.support.calls import calls_of
from tests.support.records import made_up


def test_what_many_curves_take_grows_as_their_number_does():
    made = [calls_of(partial(learning_curves, data)) for data in [made_up(trials=trials) for trials in (10, 100, 1000)]]
    assert made[2] < 5 * made[1]
