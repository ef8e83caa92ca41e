"""Trials with a parent: forks that a scheduler decides on, and trials that have their beginning in common."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.search.kinship.forking import Forking as Forking
    from hpo.search.kinship.sharing import Sharing as Sharing, lent as lent

load_when_used(__name__)
