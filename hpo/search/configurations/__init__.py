"""Configurations of a search: values that persons give, and repeats."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.search.configurations.given import Given as Given, GivenValues as GivenValues
    from hpo.search.configurations.repeats import Configurations as Configurations, completion_of as completion_of

load_when_used(__name__)
