"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import pytest

from tests.support.docs import (  # noqa: F401  # Fixtures.
    LONG,
    Ground,
    first,
    fresh,
    ground,
    one_thread,  # Of every test.
    run_page,
    shown,
)


@pytest.mark.parametrize("page", sorted(LONG))
def test_the_blocks_of_a_long_page_run(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, fresh, monkeypatch)


def test_a_checkpoint_in_shards_is_a_folder_and_is_loaded_whole(first: dict, ray_cluster: None, capsys) -> None:
    names = {**first}
    exec(shown("shards"), names)
    assert "shard-00000" in capsys.readouterr().out
    assert names["weights"]["0.weight"].shape == (32, 64)
