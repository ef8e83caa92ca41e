"""Searchers: the configurations of trials, each by its number, for Ray Tune."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.searchers.grid_search import GridSearch as GridSearch
    from hpo.strategies.searchers.history import History as History
    from hpo.strategies.searchers.model_search import ModelSearch as ModelSearch
    from hpo.strategies.searchers.random_search import RandomSearch as RandomSearch

load_when_used(__name__)
