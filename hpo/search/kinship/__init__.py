"""Trials with a parent: forks that a scheduler decides on."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.search.kinship.forking import Forking as Forking

load_when_used(__name__)
