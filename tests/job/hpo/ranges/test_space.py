"""What a searcher's suggestions become, and where values lie as a model sees them."""

from __future__ import annotations

from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    decode,
    search_space,
)


def test_optuna_takes_the_space_and_its_suggestions_decode():
    ranges: dict[str, ParameterRange] = {
        "eta": ContinuousParameter(1e-4, 1),
        "momentum": ContinuousParameter(0, 0.999, "ReverseLogarithmic"),
        "gamma": ContinuousParameter(-5, 5),
        "depth": IntegerParameter(2, 10),
        "batch": IntegerParameter(1, 4096, "Logarithmic"),
        "dropout": ContinuousParameter(0, 0.9, step=0.1),
        "decay": NormalParameter(-7, 1, "Logarithmic"),
        "fixed": ContinuousParameter(0.5, 0.5),
        "booster": CategoricalParameter(["gbtree", "dart", None]),
        "equal": CategoricalParameter([1, True, 1.0]),
    }
    search = OptunaSearch(seed=4)
    assert search.set_search_properties("auc", "max", search_space(ranges))
    seen = set()
    for number in range(40):
        row = decode(ranges, search.suggest(f"t{number}"))
        assert all(ranges[name].is_valid(value) for name, value in row.items())
        assert list(row) == list(ranges)
        assert type(row["depth"]) is type(row["batch"]) is int
        seen |= {(type(row["equal"]), row["equal"]), row["booster"]}
        search.on_trial_complete(f"t{number}", {"auc": row["eta"]})
    assert seen == {"gbtree", "dart", None, (int, 1), (bool, True), (float, 1.0)}
