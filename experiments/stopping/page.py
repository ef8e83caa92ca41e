"""What early stopping came to, in figures and words: result.json, and the tables made from it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from experiments.shared.benchmark import Target, markdown, promised, targets_to_json
from experiments.shared.scores import Scores, difference, told, unbeaten
from experiments.shared.searches import labels
from experiments.stopping.problems import StoppingProblem
from experiments.stopping.ways import Found, Pairs, Way
from hpo.text import count
from hpo.uncertainty import standard_error
from trainers.datasets import Dataset

LOSS, SHARE = 0.001, 0.15
"""What was aimed at: so little of the test score lost to all to the end, for such a share of the rounds."""

SCORED = ("validation", "test")
AGAINST = {
    Way.MODEL: (Way.EQUAL_TO_MODEL, Way.HYPERBAND, Way.ALL),
    Way.HYPERBAND: (Way.EQUAL, Way.ALL),
}


def result(problem: StoppingProblem, dataset: Dataset, found: Pairs) -> dict[str, Any]:
    """Everything measured, for result.json."""

    def error(channel: str) -> float | None:
        mean = statistics.fmean(getattr(each[Way.ALL], channel) for each in found)
        return standard_error(problem.score, mean, labels(getattr(dataset, channel)))

    whole = {
        "dataset": dataset.name,
        "title": dataset.title,
        "synthetic": dataset.synthetic,
        "score": problem.score_name,
        "unit": problem.unit,
        "workers": problem.workers,
        "units": problem.units,
        "standard_error_of_one": {channel: error(channel) for channel in SCORED},
        "seeds": [{way.name.lower(): asdict(each) for way, each in pair.items()} for pair in found],
    }
    return {**whole, "verdict": verdict(whole), "targets": targets_to_json(targets(whole))}


def targets(result: Mapping[str, Any]) -> list[Target]:
    """What was aimed at, and what was measured of it."""
    lost = _against(result, Way.MODEL, Way.ALL, "test")
    return [
        Target(
            promise=f"test {result['score']} with a model, minus that of all to the end",
            limit=-LOSS,
            measured=lost.mean,
            unit="",
            at_least=True,
            note=told(lost),
        ),
        Target(
            promise=f"{result['unit']}s with a model, of those of all to the end",
            limit=SHARE,
            measured=_share(_seeds(result), Way.MODEL),
            unit="",
        ),
    ]


def verdict(result: Mapping[str, Any]) -> str:
    """What Hyperband's rounds bought, beside as many rounds of random search and beside all to the end."""
    found, unit = _seeds(result), result["unit"]

    def beside(way: Way, other: Way) -> str:
        validation, test = (told(_against(result, way, other, channel)) for channel in SCORED)
        return f"{validation}; on test rows {test}"

    def equal(way: Way, other: Way) -> str:
        few = _counts([pair[other].configurations for pair in found])
        neither = all(unbeaten(_against(result, way, other, channel)) for channel in SCORED)
        ends = f": at equal {unit}s, it does not beat random search here" if neither else ""
        return f"random search for as many {unit}s, {few} configurations, it is {beside(way, other)}{ends}"

    return (
        f"{result['title']}, {count(len(found), 'seed')}, {found[0][Way.ALL].configurations} trials of at most "
        f"{result['units']} {unit}s: Hyperband with a model used {_share(found, Way.MODEL):.1%} of the {unit}s of as "
        f"many random trials run to the end, and the validation {result['score']} of its best minus theirs is "
        f"{beside(Way.MODEL, Way.ALL)}. Minus that of {equal(Way.MODEL, Way.EQUAL_TO_MODEL)}. Hyperband over random "
        f"configurations used {_share(found, Way.HYPERBAND):.1%}; minus all to the end it is "
        f"{beside(Way.HYPERBAND, Way.ALL)}; minus {equal(Way.HYPERBAND, Way.EQUAL)}."
    )


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json."""
    columns = ("", *(f"{channel} {result['score']}" for channel in SCORED))
    found, error = _seeds(result), result["standard_error_of_one"]["validation"]
    return {
        "verdict": verdict(result),
        "model_share": f"{_share(found, Way.MODEL):.1%}",
        "row_error": "" if error is None else f"{error:.3f}",
        "ways": markdown(("", *Way), ways(result)),
        "differences": markdown(columns, _differences(result)),
        "aim": promised(targets_to_json(targets(result))),
    }


def ways(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """What each way used and found: scores are means over the seeds with the standard error of that mean."""
    found, unit = _seeds(result), result["unit"]

    def values(of: str) -> list[list[float]]:
        return [[getattr(pair[way], of) for pair in found] for way in Way]

    made: list[tuple[str, list[str]]] = [
        ("configurations", [_counts(each) for each in values("configurations")]),
        (f"{unit}s", [_counts(each) for each in values("rounds")]),
        (f"of all {unit}s", [f"{_share(found, way):.1%}" for way in Way]),
    ]
    for channel, error in result["standard_error_of_one"].items():
        name = f"{channel} {result['score']}" + ("" if error is None else f" (standard error of one: {error:.3f})")
        made.append((name, [_mean(Scores(values=tuple(each))) for each in values(channel)]))
    seconds = [[pair[way].seconds for pair in found] for way in Way]
    made.append(("seconds on a gang that is up, median", [_median(each) for each in seconds]))
    return [(name, *cells) for name, cells in made]


def _median(seconds: Sequence[float | None]) -> str:
    """Of those that were measured; nothing where trials were read from another way's."""
    measured = [each for each in seconds if each is not None]
    return f"{statistics.median(measured):.1f}" if measured else ""


def _mean(scores: Scores) -> str:
    return f"{scores.mean:.4f}" + ("" if scores.error is None else f" ± {scores.error:.4f}")


def _counts(values: Sequence[float]) -> str:
    """A count, or from the least to the most of the seeds."""
    least, most = min(values), max(values)
    return f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"


def _differences(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"{one} minus {other}", *(told(_against(result, one, other, channel)) for channel in SCORED))
        for one, others in AGAINST.items()
        for other in others
    ]


def _against(result: Mapping[str, Any], one: Way, other: Way, channel: str) -> Scores:
    """One way's scores minus another's, a pair a seed."""
    found = _seeds(result)
    its, theirs = ([getattr(pair[way], channel) for pair in found] for way in (one, other))
    return difference(its, theirs, result["standard_error_of_one"][channel])


def _share(found: Pairs, way: Way) -> float:
    """The rounds of a way, of those of all configurations run to the end."""
    return sum(pair[way].rounds for pair in found) / sum(pair[Way.ALL].rounds for pair in found)


def _seeds(result: Mapping[str, Any]) -> list[dict[Way, Found]]:
    return [{way: Found(**pair[way.name.lower()]) for way in Way} for pair in result["seeds"]]
