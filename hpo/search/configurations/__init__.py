"""Configurations of a search beside its searcher's: values that persons give."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.search.configurations.given import Given as Given, GivenValues as GivenValues

load_when_used(__name__)
