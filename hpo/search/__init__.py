"""The search of one job: its loop, its trials, and their gangs."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.search.controller import DRAIN_SECONDS as DRAIN_SECONDS, Controller as Controller
    from hpo.search.kinship import lent as lent
    from hpo.search.observer import (
        INTERRUPTED as INTERRUPTED,
        STOP_REQUESTED as STOP_REQUESTED,
        TERMINATED as TERMINATED,
        JobState as JobState,
        Observer as Observer,
        Record as Record,
    )
    from hpo.search.recall import (
        Before as Before,
        FirstRun as FirstRun,
        Recall as Recall,
        Turn as Turn,
        turns_in as turns_in,
    )
    from hpo.search.reference_runs import OnProbe as OnProbe
    from hpo.search.simulated_gangs import SimulatedGangs as SimulatedGangs
    from hpo.search.trial import (
        PROBE as PROBE,
        UNTUNED as UNTUNED,
        Search as Search,
        Stopped as Stopped,
        TrialRun as TrialRun,
        derive_seed as derive_seed,
        rank_of as rank_of,
        standing_of as standing_of,
        status_of as status_of,
    )

load_when_used(__name__)
