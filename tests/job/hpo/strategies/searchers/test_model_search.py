"""The searcher with a model: computed ahead where that disturbs nobody, and never again what a record has."""

from __future__ import annotations

from dataclasses import replace

from tests.support.hpo.strategies.searchers.model_search import TASK, play, searcher


def test_it_is_the_same_computed_ahead_or_not_and_after_a_restart() -> None:
    tried = play(searcher())
    assert play(searcher(replace(TASK, in_process=True))) == tried
    assert play(searcher(), known=tried[:11]) == tried
    assert any(each["mixed"] is True for each in tried)
    assert all(type(each["mixed"]) in (int, bool, str) for each in tried)
