"""Text labels are held against what XGBoost's objective predicts."""

from __future__ import annotations

from tests.support.refusals import missing_names, refuses
from trainers.errors import ConfigurationError
from trainers.xgboost.labels import check_text_labels

NUMBERS = {"objective": "reg:squarederror"}


def test_numbers_with_thousands_separators_are_no_classes() -> None:
    with refuses(ConfigurationError, field=("train", "thousands"), value="'1,234.5'", remedy="write 1234.5") as caught:
        check_text_labels("train", ["1,234.5", "7", "99"], NUMBERS)
    assert missing_names(str(caught.value), "num_class")
    with refuses(ConfigurationError, field="train", value="'1,234'", remedy="num_class=3"):
        check_text_labels("train", ["1,234", "7", "many"], NUMBERS)
