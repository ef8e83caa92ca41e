"""The published theories of worse convergence on several workers, each with its source."""

from __future__ import annotations

from enum import StrEnum


class Theory(StrEnum):
    """What the published experiments named as possible reasons of their loss."""

    CONGESTION = "congested link"
    SHARP = "sharp minima"
    STALENESS = "stale gradients"
    METHOD = "no distributed method"
    NOISE = "too little noise"

    @property
    def claim(self) -> str:
        """What it says."""
        return _CLAIMS[self]

    @property
    def source(self) -> str:
        """Who says so."""
        return _SOURCES[self]


_CLAIMS = {
    Theory.CONGESTION: "large updates congest the link between workers and servers, so that they arrive late",
    Theory.SHARP: "a larger batch generalises worse, since it ends in sharp minima",
    Theory.STALENESS: "gradients are of parameters that are some updates old",
    Theory.METHOD: "some hyperparameters do not distribute: tree_method exact sorts columns, workers share rows",
    Theory.NOISE: "gradients of a larger batch are less noisy: training stays in saddles and poor minima",
}
_SOURCES = {
    Theory.CONGESTION: 'Lian et al. 2018, "Asynchronous Decentralized Parallel Stochastic Gradient Descent"',
    Theory.SHARP: 'Keskar et al. 2017, "On Large-Batch Training for Deep Learning", arXiv 1609.04836',
    Theory.STALENESS: 'Dai et al. 2019, "Toward Understanding the Impact of Staleness", arXiv 1810.03264',
    Theory.METHOD: "XGBoost's documentation of its tree methods",
    Theory.NOISE: 'Dauphin et al. 2014, "Identifying and Attacking the Saddle Point Problem"',
}
