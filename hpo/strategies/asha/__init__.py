"""ASHA: successive halving in which no trial waits for its rung to fill, for more gangs than rungs could keep busy."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.asha.as_they_come import AsTheyCome as AsTheyCome
    from hpo.strategies.asha.asha_strategy import AshaStrategy as AshaStrategy
    from hpo.strategies.asha.open_history import OpenHistory as OpenHistory

load_when_used(__name__)
