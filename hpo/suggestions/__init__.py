"""Suggestions: what to try next, from what was seen; pure, with numbers and nothing of Ray."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.suggestions.convergence import Converged as Converged, Convergence as Convergence
    from hpo.suggestions.observation import Observation as Observation, scores_of as scores_of
    from hpo.suggestions.proposal import (
        FEWEST_TRIALS as FEWEST_TRIALS,
        Predictor as Predictor,
        Proposal as Proposal,
        most_improving as most_improving,
        propose as propose,
        scales_of as scales_of,
    )
    from hpo.suggestions.quantiles import WITHIN as WITHIN, Expected as Expected, Quantiles as Quantiles
    from hpo.suggestions.space import Space as Space
    from hpo.suggestions.surface import Surface as Surface

load_when_used(__name__)
