"""Labels and column names that XGBoost takes, by objective and by metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainers.channels import LOWER, QID, WEIGHT, LabelRule, separated_number
from trainers.checking import some_of
from trainers.errors import ConfigurationError, DataError
from trainers.xgboost.rounds import quantiles_of


def label_rules(hyperparameters: Mapping[str, Any], metric: str | None = None, *, train: bool) -> tuple[LabelRule, ...]:
    """The rules of an objective for a channel's labels, and those of the job's own objective for its channel.

    Args:
        hyperparameters: XGBoost's own.
        metric: the objective as "channel:metric", where the channel is the one that it is measured on.
        train: the channel is the one that is trained on.
    """
    objective = hyperparameters.get("objective") or "reg:squarederror"
    classes = int(hyperparameters.get("num_class") or 0) if objective.startswith("multi:") else 2
    who = f"objective {objective!r}"
    rules: list[LabelRule] = []
    if objective in _LABELS:
        rules.append(_LABELS[objective])
    if objective.startswith("multi:"):
        takes, remedy = f"whole numbers from 0 to {classes - 1}", f"number the classes from 0; num_class is {classes}"
        rules.append(LabelRule(who=who, takes=takes, remedy=remedy, least=0, most=classes - 1, whole=True))
    if objective.startswith("binary:") and train:
        rules.append(_both(who, "add rows of the other class"))
    name = (metric or "").rpartition(":")[2].partition("@")[0]
    if name in ("auc", "aucpr"):
        # XGBoost reports NaN without them.
        who = f"objective_metric_name {metric!r}"
        if classes > 2:
            remedy = "add rows of the other classes, or choose another metric"
            rules.append(LabelRule(who=who, takes=f"rows of all {classes} classes", remedy=remedy, classes=classes))
        else:
            rules.append(_from_0_to_1(who, "encode the classes as 0 and 1, or choose another metric"))
            rules.append(_both(who, "add rows of the other class, or choose another metric"))
    return tuple(rules)


def _both(who: str, remedy: str) -> LabelRule:
    return LabelRule(who=who, takes="rows of both classes", remedy=remedy, classes=2)


def _from_0_to_1(who: str, remedy: str) -> LabelRule:
    return LabelRule(who=who, takes="labels from 0 to 1", remedy=remedy, least=0, most=1)


def _objective_rules() -> Iterator[tuple[str, LabelRule]]:
    """The label rules of objectives, whatever the other parameters are."""
    other = "choose another objective"
    for objective in ("binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic"):
        yield objective, _from_0_to_1(f"objective {objective!r}", "encode the classes as 0 and 1")
    table: list[tuple[str, str, str, dict[str, Any]]] = [
        ("count:poisson", "labels of 0 or more", other, {"least": 0}),
        (
            "rank:ndcg",
            "labels from 0 to 31",
            "give grades of relevance, or choose 'rank:pairwise'",
            {"least": 0, "most": 31},
        ),
        ("rank:map", "labels from 0 to 1", "give 1 for what is relevant and 0 for the rest", {"least": 0, "most": 1}),
        ("reg:tweedie", "labels of 0 or more", other, {"least": 0}),
        ("reg:gamma", "labels above 0", other, {"least": 0, "open": True}),
        ("reg:squaredlogerror", "labels above -1", other, {"least": -1, "open": True}),
    ]
    for objective, takes, remedy, bounds in table:
        yield objective, LabelRule(who=f"objective {objective!r}", takes=takes, remedy=remedy, **bounds)


_LABELS = dict(_objective_rules())


def check_names(channel: str, names: Sequence[str] | None) -> None:
    """Refuses names of features that XGBoost refuses, when the model is used too: to rename them here would not do.

    Raises:
        DataError: naming the channel, the column and another name.
    """
    for name in names or ():
        if wrong := re.search(r"[\[\]<]", name):
            raise DataError(
                f"channel {channel!r}: the column {name!r} has a name that XGBoost does not take, for its "
                f"{wrong[0]!r}; rename it, to {re.sub(wrong.re, '_', name)!r} say"
            )


def check_text_labels(channel: str, classes: Sequence[str], hyperparameters: Mapping[str, Any]) -> None:
    """Refuse text labels where the objective predicts numbers, or another count of classes.

    Args:
        channel: its name.
        classes: the text labels, in the order of their numbers.
        hyperparameters: XGBoost's own.

    Raises:
        ConfigurationError: naming the channel, the objective and what to give.
    """
    objective = str(hyperparameters.get("objective") or "reg:squarederror")
    count = int(hyperparameters.get("num_class") or 0) if objective.startswith("multi:") else 2
    shown = some_of(list(map(repr, classes)))
    if not objective.startswith(("binary:", "multi:")) and objective != "reg:logistic":
        if example := separated_number(classes):
            raise ConfigurationError(
                f"channel {channel!r} has labels such as {example!r}, numbers with thousands separators, which are "
                f"read as text, and objective {objective!r} predicts numbers; write {example.replace(',', '')}"
            )
        fits = "'binary:logistic'" if len(classes) <= 2 else f"'multi:softprob' with num_class={len(classes)}"
        raise ConfigurationError(
            f"channel {channel!r} has text labels, {shown}, and objective {objective!r} predicts numbers; give {fits}"
        )
    if len(classes) > count:
        fits = f"'multi:softprob' with num_class={len(classes)}"
        raise ConfigurationError(
            f"channel {channel!r} has {len(classes)} classes, {shown}, and objective {objective!r} takes {count}; give "
            f"{fits}"
        )


def check_said(channel: str, said: Sequence[str], hyperparameters: Mapping[str, Any], workers: int) -> None:
    """Refuses labels without bounds, and rows without queries, where an objective or a metric asks for them.

    Bounds that nothing would read are refused, too, and weights of queries where rows are learnt from one by one.

    Args:
        channel: its name.
        said: what is said of its rows, of `trainers.channels.ROLES`.
        hyperparameters: XGBoost's own.
        workers: that train.

    Raises:
        ConfigurationError: naming the channel and what it lacks, or has too much.
    """
    objective = hyperparameters.get("objective") or "reg:squarederror"
    given = hyperparameters.get("eval_metric")
    metrics = [given] if isinstance(given, str) else list(given or ())
    of_bounds = [name for name in metrics if name in _OF_BOUNDS and channel != "train"]
    of_bounds += ["survival:aft"] * (objective == "survival:aft")
    if of_bounds and LOWER not in said:
        raise ConfigurationError(
            f"channel {channel!r} has no bounds of its labels, and {of_bounds[-1]!r} compares with them; give "
            "Channel.of(..., label_lower_bound=..., label_upper_bound=...)"
        )
    ranks = str(objective).startswith("rank:")
    if ranks and QID not in said:
        raise ConfigurationError(
            f"channel {channel!r} does not say which query a row belongs to, and objective {objective!r} ranks the "
            "rows of each; give Channel.of(..., qid=...)"
        )
    if QID in said and WEIGHT in said and not ranks:
        raise ConfigurationError(
            f"channel {channel!r} has qid and weight, which XGBoost takes for weights of queries, and objective "
            f"{objective!r} learns from rows; give an objective of rank:, or leave one of them out"
        )
    if QID in said and WEIGHT in said and workers > 1 and channel == "train":
        raise ConfigurationError(
            f"channel {channel!r} has weights of queries, which XGBoost divides by the mean of a worker's own, so that "
            f"{workers} workers learn another model than one; leave weight out, or train with num_workers=1"
        )
    if QID in said and WEIGHT in said and (of_rows := [name for name in metrics if name.partition("@")[0] == "ams"]):
        raise ConfigurationError(
            f"channel {channel!r} has weights of queries, and metric {of_rows[0]!r} counts weights of rows; leave one "
            "of the two out"
        )
    if LOWER in said and objective != "survival:aft":
        raise ConfigurationError(
            f"channel {channel!r} has bounds of its labels, and objective {objective!r} does not read them; give "
            "'survival:aft', or leave the bounds out"
        )


def check_several(objective: str, workers: int) -> None:
    """Refuses objectives of which several workers learn another model than one does.

    Raises:
        ConfigurationError: naming the objective, the reason and what to give.
    """
    if workers > 1 and objective in _OF_ONE_WORKER:
        reason, remedy = _OF_ONE_WORKER[objective]
        raise ConfigurationError(
            f"objective {objective!r} {reason.format(workers=workers)}; {remedy}, or num_workers=1"
        )


def check_margins(margins: Mapping[str, int], hyperparameters: Mapping[str, Any]) -> None:
    """Refuses base margins that are not one an output, and channels without, where another has them.

    Args:
        margins: how many a row has, by channel.
        hyperparameters: XGBoost's own.

    Raises:
        ConfigurationError: naming the channel.
    """
    if not any(margins.values()):
        return
    objective = hyperparameters.get("objective") or "reg:squarederror"
    outputs, what = 1, ""
    if objective.startswith("multi:"):
        outputs, what = int(hyperparameters.get("num_class") or 0), ", one a class"
    elif objective == "reg:quantileerror":
        outputs, what = len(quantiles_of(hyperparameters)), ", one a quantile"
    has = next(name for name, count in margins.items() if count)
    for name, count in margins.items():
        if not count:
            raise ConfigurationError(
                f"channel {name!r} has no base_margin, and {has!r} has: a model that begins at margins is nothing "
                "without them; give both, or neither"
            )
        if outputs and count != outputs:
            raise ConfigurationError(
                f"channel {name!r} has {count} column{'s' if count > 1 else ''} of base_margin, and objective "
                f"{objective!r} takes {outputs}{what}"
            )


_OF_BOUNDS = ("aft-nloglik", "interval-regression-accuracy")
"""Metrics that compare with bounds."""

_LEAVES = (
    "makes a leaf's value of a quantile of its rows, and {workers} workers would take the mean of those of their "
    "own: another model than one worker's"
)
_OF_ONE_WORKER = {
    "survival:cox": (
        "compares each row with all that live longer, and {workers} workers would compare those of a shard alone",
        "use 'survival:aft'",
    ),
    "reg:absoluteerror": (_LEAVES, "use 'reg:pseudohubererror', which a small huber_slope brings near to it"),
    "reg:quantileerror": (_LEAVES, "use an objective of your own with a smooth loss"),
}
"""Objectives for one worker: the reason, and the remedy."""
