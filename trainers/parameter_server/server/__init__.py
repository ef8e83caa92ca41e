"""One parameter server: its state, its sockets, and its Ray actor."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.parameter_server.server.actor import Servers as Servers
    from trainers.parameter_server.server.line import Line as Line
    from trainers.parameter_server.server.listener import Listener as Listener
    from trainers.parameter_server.server.server import Server as Server, Session as Session

load_when_used(__name__)
