"""Forks: trials that begin from another trial's checkpoint, and the schedulers that decide on them."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.forks.fork import Fork as Fork, Origin as Origin, Phase as Phase
    from hpo.forks.population import Population as Population

load_when_used(__name__)
