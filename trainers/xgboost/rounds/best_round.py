"""The best round of a trial, which early stopping counts from and whose model is handed out; it travels in models.

A booster's attributes hold it, so that a trial that pauses, moves or is resumed stops in the round of one that trains
through. XGBoost's own `best_iteration` and `best_score` are there too.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from trainers.errors import TrialError
from trainers.gangs import Assignment, Report
from trainers.xgboost.booster import first_rounds
from trainers.xgboost.parameters import MAXIMIZE, PATIENCE, maximized

STATE, MODEL = "warmband_best", "warmband_best_model"
"""Attributes of a booster that is trained on: where the best round stands, and its model where no slice makes it."""


@dataclass(slots=True, kw_only=True)
class BestRound:
    """The best round so far.

    Args:
        trial: whose best it is: a trial that goes on from another's model has only rounds of its own to choose from.
        metric: what it is the best by, "channel:metric"; empty until the first report of a training without an
            objective: it is the last metric of the last channel then, as XGBoost has it.
        maximize: which end is better; None: XGBoost's own table says.
        patience: rounds without a better one after which training ends; None: it does not.
        by_best: the job compares trials by their best value, so that this round's model is the trial's.
        sliced: its model is the first rounds of a later one.
        round: from 1; 0 before the first.
        value: of the metric.
        metrics: the report of the round.
        model: of the round, where it is no slice.
        ended: training has ended; the report stands for all rounds that are left.
    """

    trial: str
    metric: str
    maximize: bool | None
    patience: int | None
    by_best: bool
    sliced: bool
    round: int = 0
    value: float = math.nan
    metrics: dict[str, float] = field(default_factory=dict)
    model: bytes = b""
    ended: bool = False

    @classmethod
    def of(cls, booster: Any, assignment: Assignment) -> Self | None:
        """Where a booster stands that an assignment trains on; None where nothing goes by its best round.

        The booster's attributes of earlier segments are gone from it then: `packed` sets them.
        """
        told = {name: value for name, value in assignment.hyperparameters.items() if value is not None}
        kept = _taken(booster)
        patience = told.get(PATIENCE)
        if patience is None and not assignment.by_best:
            return None
        best = cls(
            trial=assignment.trial_id,
            metric=assignment.objective,
            maximize=assignment.mode == "max" if assignment.mode else told.get(MAXIMIZE),
            patience=None if patience is None else int(patience),
            by_best=assignment.by_best,
            sliced=told.get("booster", "gbtree") == "gbtree" and told.get("process_type", "default") == "default",
        )
        if kept is not None and best.metric in ("", kept[0]["metric"]) and best._goes_on(kept[0]):
            state, model = kept
            best.model = b"" if best.sliced else model
            best.metric, best.round, best.value = state["metric"], state["round"], float(state["value"])
            best.metrics, best.ended = state["metrics"], state["ended"]
        return best

    def _goes_on(self, state: Mapping[str, Any]) -> bool:
        """Whether a state is this trial's; that of a training that has ended stands for whoever goes on from it."""
        return bool(state["ended"]) or state.get("trial", self.trial) == self.trial

    def take(self, report: Report, booster: Any) -> bool:
        """Takes a round's report; returns whether training ends with it.

        Raises:
            TrialError: nothing is measured that the best round could be known by.
        """
        if not self.metric:
            self.metric = next(reversed(report.metrics), "")
        if self.metric not in report.metrics:
            raise TrialError(f"{PATIENCE} needs a metric: add a channel beside 'train', to be evaluated")
        value = report.metrics[self.metric]
        if not self.round or self._better(value):
            self.round, self.value, self.metrics = report.step, value, dict(report.metrics)
            if not self.sliced:
                self.model = bytes(booster.save_raw("ubj"))
        self.ended = self.patience is not None and report.step - self.round >= self.patience
        return self.ended

    def _better(self, value: float) -> bool:
        maximize = maximized(self.metric.rpartition(":")[2]) if self.maximize is None else self.maximize
        if math.isnan(self.value):
            return math.isfinite(value)
        return value > self.value if maximize else value < self.value

    @property
    def details(self) -> dict[str, Any]:
        """What a trial's details say of a training that ended, in the segment in which it did."""
        return {"early_stopping": {"best_round": self.round}} if self.ended else {}

    def packed(self, booster: Any) -> bytes:
        """The model to go on from; of a trial that has ended, the best round's."""
        if self.ended:
            booster = self._model(booster)
        state = {
            "trial": self.trial,
            "metric": self.metric,
            "round": self.round,
            "value": str(self.value),
            "metrics": self.metrics,
            "ended": self.ended,
            "by_best": self.by_best,
        }
        model = b"" if self.ended else self.model
        if self.sliced and self.by_best and not self.ended and "c" in (booster.feature_types or ()):
            model = bytes(first_rounds(booster, self.round).save_raw("ubj"))
        kept = base64.b64encode(model).decode() if model else None
        own = {"best_iteration": str(self.round - 1), "best_score": str(self.value)}
        booster.set_attr(**own, **{STATE: json.dumps(state), MODEL: kept})
        return bytes(booster.save_raw("ubj"))

    def _model(self, booster: Any) -> Any:
        if self.sliced:
            return booster if booster.num_boosted_rounds() <= self.round else first_rounds(booster, self.round)
        return _loaded(self.model) if self.model else booster  # Without one it is the model of the round already.


def handed_out(booster: Any) -> Any:
    """The model that a user gets of a checkpoint's: the best round's, where the trial is compared by that."""
    kept = _taken(booster)
    if kept is None:
        return booster
    state, model = kept
    if state["by_best"] and not state["ended"]:
        own = booster.attributes()
        booster = _loaded(model) if model else booster[: state["round"]]
        booster.set_attr(**own)
    return booster


def loading(checkpoint: str, booster: Any | None) -> str:
    """Python code that makes the model of `handed_out` of a file: an import, and an assignment to `model`.

    `booster` is what the file holds, if it is there.
    """
    kept = None if booster is None else _taken(booster)
    whole = f"xgboost.Booster(model_file={checkpoint!r})"
    if kept is None or kept[0]["ended"] or not kept[0]["by_best"]:
        return f"import xgboost\nmodel = {whole}"
    state, model = kept
    if not model:
        return f"import xgboost\nmodel = {whole}[: {state['round']}]"
    own = f"xgboost.Booster(model_file=bytearray(base64.b64decode({whole}.attr({MODEL!r}))))"
    return f"import base64, xgboost\nmodel = {own}"


def _taken(booster: Any) -> tuple[Mapping[str, Any], bytes] | None:
    """The attributes of a booster, which are taken out of it."""
    raw, model = booster.attr(STATE), booster.attr(MODEL)
    if raw is None:
        return None
    booster.set_attr(**{STATE: None, MODEL: None})
    return json.loads(raw), base64.b64decode(model or "")


def _loaded(model: bytes) -> Any:
    import xgboost

    return xgboost.Booster(model_file=bytearray(model))
