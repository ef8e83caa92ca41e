"""Parameters on servers, with gradients pushed by workers: in step, as they come, or with bounded staleness."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.parameter_server.trainer import ParameterServerTrainer as ParameterServerTrainer

load_when_used(__name__)
