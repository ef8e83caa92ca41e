"""Categories: on several workers as on one, as XGBoost has them by hand, and in a saved model by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.trainers.xgboost.categories import (
    DATA,
    FOREIGN,
    ONE_HOT,
    PARTS,
    PLAIN,
    RANDOM,
    as_category,
    order,
    predicted,
    program,
    written,
)
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("how", [ONE_HOT, PARTS])
@pytest.mark.parametrize("names", ["plain", "foreign"])
@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_two_workers_learn_what_one_does(
    pair: ProcessGang, tmp_path: Path, kind: str, names: str, how: dict[str, Any]
) -> None:
    written(tmp_path / "rows", kind, names)
    answers = pair.run(program(tmp_path / "rows", kind, names, **how), order(tmp_path / "two", **how))
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 2
    [alone] = serve_alone(program(tmp_path / "rows", "memory", names, **how)(), order(tmp_path / "one", **how))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)
    frame, order_of_user = DATA[names], [*RANDOM.permutation(PLAIN if names == "plain" else FOREIGN)]
    table = pa.Table.from_pandas(as_category(frame[:200], order_of_user), preserve_index=False)
    of_two, of_one = (predicted(segment.checkpoint, table) for segment in (segments[0], alone))
    np.testing.assert_allclose(of_two, of_one, rtol=1e-4, atol=1e-5)
    assert np.sqrt(np.mean((of_two - frame["y"][:200]) ** 2)) < 0.75 * np.std(frame["y"][:200])
