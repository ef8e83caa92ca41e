"""The busy machine's works in their three ways, with a few rounds each, and what is made of their times."""

import json
from dataclasses import asdict

from experiments.busy_machine import Measured, page_tables, ratio, rows, targets
from experiments.shared.benchmark import targets_to_json


def measured(work: str, *, busy: bool, **milliseconds: list[float]) -> list[Measured]:
    return [Measured(work=work, arm=arm, busy=busy, milliseconds=taken) for arm, taken in milliseconds.items()]


def test_ratios_are_of_medians_within_one_state():
    found = [
        *measured("XGBoost", busy=False, spinning=[8.0], here=[8.5], calmed=[8.0]),
        *measured("XGBoost", busy=True, spinning=[300, 90, 400], here=[20, 30, 500], calmed=[75, 60, 90]),
        *measured("job in hand", busy=True, spinning=[20], here=[20], calmed=[5]),
        *measured("job in hand", busy=False, spinning=[20], here=[20], calmed=[5]),
    ]
    assert ratio(found, "XGBoost", "here", busy=True) == 10
    assert [(target.note, target.measured, target.kept) for target in targets(found)] == [
        ("here", 10, True),
        ("calmed", 4, True),
        ("here", 1, False),
        ("calmed", 4, True),
    ]
    assert rows(found)[0] == ("XGBoost", "as it is", "8.00", "8.50", "8.00", "0.94")
    assert [line[:2] for line in rows(found)[2:]] == [("XGBoost", "busy"), ("job in hand", "busy")]
    kept = [{**asdict(each), "median": each.median} for each in found]
    tables = page_tables(json.loads(json.dumps({"measured": kept, "targets": targets_to_json(targets(found))})))
    assert "| XGBoost | busy | 300.00 | 30.00 | 75.00 | 10.00 |" in tables["works"]
    assert tables["promises"].count("missed") == 1
