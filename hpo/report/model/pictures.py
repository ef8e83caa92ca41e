"""The pictures of a job's model, in the order of the page."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from hpo.report.data import JobData
from hpo.report.model.belief import Belief
from hpo.report.model.contours import value_contours
from hpo.report.model.importance import importance_bars, importances
from hpo.report.model.predictions import left_out_predictions
from hpo.report.model.slices import value_slices
from hpo.report.model.suggestions import expected_and_measured
from hpo.report.pictures import Figure


def model_figures(data: JobData) -> list[Figure]:
    """Pictures of what the model believed and believes of a job; none of one with too little to learn from."""
    then, belief = expected_and_measured(data), Belief.of(data)
    if belief is None:
        return [] if then is None else [then]
    # Matrices of a hundred rows: threads would wait for one another, and their sums differ in the last digits.
    with threadpool_limits(1, user_api="blas"):
        shares = importances(belief)
        order = [each.name for each in shares] or belief.names
        drawn = (
            importance_bars(belief, shares),
            value_slices(belief, order),
            value_contours(belief, order),
            then,
            left_out_predictions(belief),
        )
    return [figure for figure in drawn if figure is not None]
