"""Wire of the service: requests become values that its model allows, and values become responses."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.aws.wire.calls import Call as Call, Wire as Wire, call_of as call_of, wire_of as wire_of

load_when_used(__name__)
