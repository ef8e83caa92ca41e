"""Hyperband: brackets and rungs that ration what trials train, and which trials go on from a rung."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.hyperband.halving import Hyperband as Hyperband
    from hpo.strategies.hyperband.hyperband_strategy import (
        HyperbandStrategy as HyperbandStrategy,
        HyperbandStrategyConfig as HyperbandStrategyConfig,
        StrategyConfig as StrategyConfig,
    )
    from hpo.strategies.hyperband.layouts import (
        cutting as cutting,
        halvings_of as halvings_of,
        lay_out as lay_out,
        lay_out_cutting as lay_out_cutting,
        nearest_rungs as nearest_rungs,
        run_all as run_all,
    )
    from hpo.strategies.hyperband.plan import (
        MOST_JOBS as MOST_JOBS,
        MOST_RESOURCE as MOST_RESOURCE,
        Bracket as Bracket,
        Plan as Plan,
    )
    from hpo.strategies.hyperband.standings import (
        Cut as Cut,
        Entry as Entry,
        Standings as Standings,
        State as State,
    )

load_when_used(__name__)
