"""The tables of a document, made of what the search for a cause found."""

from __future__ import annotations

import json
from typing import Any

from experiments.why_it_broke import page_tables
from tests.support.refusals import mentions

MADE: dict[str, Any] = {
    "metric": "validation:accuracy",
    "unit": "epoch",
    "verdict": "It is staleness.",
    "one_worker": {"mean": 0.97, "standard_error": 0.002},
    "distributed": {"mean": 0.1, "standard_error": None},
    "findings": [
        {
            "causes": ["staleness"],
            "theories": ["stale gradients"],
            "changed": "mode sync instead of async",
            "mean": 0.97,
            "standard_error": 0.002,
            "share": {"value": 1.0, "standard_error": 0.003},
        },
    ],
    "pair": {
        "causes": ["staleness", "shard imbalance"],
        "theories": ["stale gradients", None],
        "changed": "mode sync; training rows shuffled first",
        "mean": 0.96,
        "standard_error": 0.002,
        "share": {"value": 0.99, "standard_error": None},
    },
    "theories": [
        {"theory": "stale gradients", "claim": "are old", "source": "Dai", "verdict": "confirmed", "why": "it is"},
    ],
    "noise_scale": {
        "one worker": {"rows": 100, "scale": [3.49, 9.0, 250.4], "noise_against_signal": 2.504},
        "distributed": {"rows": 400, "scale": [12.4, None], "noise_against_signal": None},
    },
    "outcomes": {
        "distributed": [
            {"curve": [0.1], "staleness": {"2": 1, "4": 1}, "link_seconds": 0.5, "pushes": 2},
            {"diverged": True},
        ],
        "congested link": [{"curve": [0.1], "staleness": {"2": 4}}],
    },
}


def test_tables_are_made_of_a_result_alone() -> None:
    tables = page_tables(json.loads(json.dumps(MADE)))
    assert tables["verdict"] == "It is staleness."
    rows = [
        ("one worker", "| | | 0.9700 ± 0.0020 | |"),
        ("staleness", "mode", "sync", "async", "stale gradients", "| 0.9700 ± 0.0020 | 100.0% ± 0.3% |"),
        ("staleness", "shard imbalance", "mode sync", "rows", "stale gradients", "| 0.9600 ± 0.0020 | 99% |"),
        ("distributed", "| | | 0.1000 | |"),
    ]
    for line, names in zip(tables["causes"].splitlines()[2:], rows, strict=True):
        mentions(line, *names)
    assert tables["theories"].splitlines()[2:] == ["| stale gradients | are old | confirmed | it is | Dai |"]
    mentions(tables["link"], "push", "250.0 ms", "link", "1.50 updates", "2.00")
    assert tables["noise"].splitlines()[2:] == [
        "| one worker | 100 | 3.5 | 250 | 2.5 |",
        "| distributed | 400 | 12 | no gradient left | no gradient left |",
    ]


def test_where_nothing_broke_or_was_measured_there_are_fewer_tables() -> None:
    less = {**MADE, "findings": [], "pair": None, "noise_scale": {}, "outcomes": {}}
    assert set(page_tables(less)) == {"verdict", "theories"}
