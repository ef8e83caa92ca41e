"""Fair shares of one cluster among its jobs."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.gangs.sharing.fair_share import Claim as Claim, Held as Held
    from trainers.gangs.sharing.neighbours import Neighbours as Neighbours

load_when_used(__name__)
