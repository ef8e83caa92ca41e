"""Suggestions: what to try next, from what was seen; pure, with numbers and nothing of Ray."""

from hpo.suggestions.observation import Observation
from hpo.suggestions.proposal import FEWEST_TRIALS, propose
from hpo.suggestions.space import Space

__all__ = ["FEWEST_TRIALS", "Observation", "Space", "propose"]
