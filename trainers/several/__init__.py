"""Several trainers in one job: a hyperparameter says which of them trains a configuration."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.several.trainer import SeveralTrainers as SeveralTrainers

load_when_used(__name__)
