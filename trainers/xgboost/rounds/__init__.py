"""Rounds of a training: their metrics, the best of them, and when they end."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.xgboost.rounds.best_round import (
        BestRound as BestRound,
        handed_out as handed_out,
        loading as loading,
    )
    from trainers.xgboost.rounds.evaluation import (
        NONE as NONE,
        Evaluation as Evaluation,
        Share as Share,
        Sum as Sum,
        classes_of as classes_of,
        sum_over as sum_over,
    )
    from trainers.xgboost.rounds.halting import Looks as Looks, goes_on_exactly as goes_on_exactly
    from trainers.xgboost.rounds.losses import quantiles_of as quantiles_of
    from trainers.xgboost.rounds.own_functions import (
        METRICS as METRICS,
        OBJECTIVE as OBJECTIVE,
        Function as Function,
        OwnFunctions as OwnFunctions,
        Peers as Peers,
        unallowed as unallowed,
    )

load_when_used(__name__)
