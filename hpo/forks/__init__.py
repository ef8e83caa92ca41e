"""Forks: trials that begin from another trial's checkpoint, the schedulers that decide on them, and schedules."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.forks.effects import (
        Effects as Effects,
        check_effects as check_effects,
        check_keeps_trials as check_keeps_trials,
    )
    from hpo.forks.fork import Fork as Fork, Origin as Origin, Phase as Phase
    from hpo.forks.population import Population as Population

load_when_used(__name__)
