"""Workers and parameter servers simulated in one process."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.parameter_server.simulation.workers import simulate as simulate

load_when_used(__name__)
