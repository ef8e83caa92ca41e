"""A job of random search with the median rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpo import HyperparameterTuner, IntegerParameter
from tests.support import driving

NINE = IntegerParameter(9, 9)


def tuner(folder: Path, callbacks: Any = (), **options: Any) -> HyperparameterTuner:
    """Return a tuner of random search with the median rule and nine rounds a trial."""
    made = driving.tuner(folder, callbacks, **options)
    ranges = {**made.ranges, "num_round": NINE}
    made.settings = made.settings.changed(
        strategy="Random", strategy_config=None, early_stopping_type="Auto", ranges=ranges
    )
    return made
