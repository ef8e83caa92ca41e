"""Decentralised averaging: workers on a ring, each with a model of its own, and no server."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.parameter_server.ring.distribution import Neighbour as Neighbour, RingDistribution as RingDistribution
    from trainers.parameter_server.ring.replica import Replica as Replica
    from trainers.parameter_server.ring.sockets import Ring as Ring, beside as beside

load_when_used(__name__)
