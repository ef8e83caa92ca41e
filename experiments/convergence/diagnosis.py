"""The diagnosis of a distributed run: its causes, their certainty, and the sentence that says so; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.convergence.causes import Cause, Change, Run, changes, ranges
from experiments.convergence.effects import Gap, Share, interact
from experiments.shared.scores import Scores
from hpo.ranges import ParameterRange
from hpo.report import with_error
from hpo.text import count

ENOUGH = 0.9
"""The share of a gap that a change has to give back to be called enough by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one change came to.

    Args:
        change: what was brought back to its value on one worker.
        scores: of the distributed run with it.
        share: of the gap that it gives back.
    """

    change: Change
    scores: Scores
    share: Share

    @property
    def enough(self) -> bool:
        """Whether it gives back nearly all, by more than its noise."""
        return self.share.value >= ENOUGH and self.share.counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is known of a distributed run.

    Args:
        run: how it was distributed.
        metric: what its scores are.
        gap: between one worker and it.
        findings: of single changes, the most that was given back first; empty where there is no gap.
        pair: of the best two at once; None where none were tried.
        ruled_out: causes without an experiment, and why.
        exact: scores of one worker with exact trees; None where that was not trained.
    """

    run: Run
    metric: str
    gap: Gap
    findings: Sequence[Finding] = ()
    pair: Finding | None = None
    ruled_out: Mapping[Cause, str] = field(default_factory=dict)
    exact: Scores | None = None

    @property
    def enough(self) -> list[Finding]:
        """The single changes that give back nearly all."""
        return [finding for finding in self.findings if finding.enough]

    @property
    def interact(self) -> bool:
        """Whether the single changes do not add up to the whole gap."""
        return bool(self.findings) and interact(self._counting)

    @property
    def named(self) -> str:
        """The causes that are enough by themselves, as a sentence names them."""
        return listed([cause.word for finding in self.enough for cause in finding.change.causes])

    @property
    def found(self) -> list[Cause]:
        """The causes whose change gives something back."""
        return [cause for finding in self.findings if finding.share.counts for cause in finding.change.causes]

    @property
    def ranges(self) -> dict[str, ParameterRange]:
        """What to tune."""
        return ranges(self.run, self.found) if self.gap.is_one else {}

    @property
    def verdict(self) -> str:
        """What it was, in a sentence with its figures."""
        if not self.gap.is_one:
            return self._no_gap()
        came = f"{count(self.run.workers, 'worker')} came to {self.gap.distributed.text} where one comes to "
        came += f"{self.gap.alone.text} ({self.metric})"
        best = self.findings[0] if self.findings else None
        if best is None or not best.share.counts:
            return f"{came}, and nothing that was changed gives any of that back by itself."
        if not self.enough:
            more = ""
            if self.pair is not None and self.pair.share.value > best.share.value:
                more = f", and {percent(self.pair.share)} with {self.pair.change.said}"
            return f"No single cause: {came}; {best.change.said} gives back the most, {percent(best.share)}{more}."
        if len(self.enough) == 1:
            back = f"with {best.change.said}, {best.scores.text}, which gives back {percent(best.share)} of the gap"
            return f"It is {self.named}: {came}; {back}."
        each = listed([percent(finding.share) for finding in self.enough])
        either = "either" if len(self.enough) == 2 else "any one of these"
        return f"It takes {self.named} together: {came}; taking away {either} gives back nearly all of it ({each})."

    @property
    def _counting(self) -> list[Share]:
        """The shares that are away from nothing; those of the others would add their noise alone."""
        return [finding.share for finding in self.findings if finding.share.counts]

    @property
    def adding_up(self) -> str:
        """What the shares come to together."""
        total = sum(share.value for share in self._counting)
        if not self.interact:
            return f"The shares add up to {total:.0%}: the causes act each by itself."
        if total > 1:
            text = (
                f"The shares add up to {total:.0%}, and not to 100%: the causes do their harm together, and taking "
                "away one of them takes away what another does."
            )
        else:
            text = (
                f"The shares add up to {total:.0%}, and not to 100%: what is left needs more than one change at once."
            )
        if self.pair is None:
            return text
        return f"{text} The best two at once ({self.pair.change.said}) give back {percent(self.pair.share)}."

    def to_json(self) -> dict[str, Any]:
        """For result.json."""
        return {
            "metric": self.metric,
            "workers": self.run.workers,
            "mode": self.run.mode,
            "one_worker": _scores(self.gap.alone),
            "distributed": _scores(self.gap.distributed),
            "gap": {"size": self.gap.size, "standard_error": self.gap.error, "is_one": self.gap.is_one},
            "findings": [_finding(finding) for finding in self.findings],
            "pair": self.pair and _finding(self.pair),
            "not_tried": dict(self.ruled_out),
            "exact": self.exact and _scores(self.exact),
            "ranges": {name: bounds.to_json() for name, bounds in self.ranges.items()},
            "verdict": self.verdict,
        }

    def _no_gap(self) -> str:
        gap = self.gap
        came = f"{count(self.run.workers, 'worker')} came to {gap.distributed.text} and one to {gap.alone.text}"
        noise = with_error(gap.size, gap.error, 4)
        if gap.size < 0:
            return f"Nothing broke: {came} ({self.metric}), so that one worker is no better ({noise})."
        return f"Nothing broke: {came} ({self.metric}); the difference is within its noise ({noise})."


def diagnose(
    run: Run,
    metric: str,
    gap: Gap,
    tried: Sequence[tuple[Change, Scores]],
    pairs: Sequence[tuple[Change, Scores]],
    ruled_out: Mapping[Cause, str],
    exact: Scores | None = None,
) -> Diagnosis:
    """Puts together what trainings gave.

    Args:
        run: how it was distributed.
        metric: what was compared.
        gap: between one worker and it.
        tried: single changes and their scores.
        pairs: the same of two at once, of which the best is kept.
        ruled_out: causes that were not tried, and why.
        exact: scores of one worker with exact trees.
    """
    single, double = (
        sorted(
            (Finding(change=change, scores=scores, share=gap.share(scores)) for change, scores in each),
            key=lambda finding: -finding.share.value,
        )
        for each in (tried, pairs)
    )
    return Diagnosis(
        run=run,
        metric=metric,
        gap=gap,
        findings=single,
        pair=double[0] if double else None,
        ruled_out=ruled_out,
        exact=exact,
    )


def pairs_of(diagnosis: Diagnosis) -> list[Change]:
    """What to try on top of the best single change: what it leaves different from one worker.

    Changes of the data, the link and the noise that did nothing by themselves are left out.
    """
    if not diagnosis.findings:
        return []
    best = diagnosis.findings[0].change
    left, _ = changes(diagnosis.run.changed(best.hyperparameters))
    inert = {Cause.SHARDS, Cause.METRIC, Cause.CONGESTION, Cause.NOISE, Cause.SHARED} - set(diagnosis.found)
    left = [change for change in left if not change.hyperparameters.keys() & best.hyperparameters.keys()]
    return [best & change for change in left if not {*change.causes} & ({*best.causes} | inert)]


def percent(share: Share) -> str:
    """A share as people say it, to a tenth of a percent where it is that sure."""
    error = share.error
    digits = 1 if error is not None and error < 0.01 else 0
    value = round(share.value, digits + 2) or 0.0  # Not -0.0.
    return f"{value:.{digits}%}" if error is None else f"{value:.{digits}%} ± {error:.{digits}%}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _scores(scores: Scores) -> dict[str, Any]:
    return {"values": list(scores.values), "mean": scores.mean, "standard_error": scores.error}


def _finding(finding: Finding) -> dict[str, Any]:
    share = {"value": finding.share.value, "standard_error": finding.share.error}
    causes = [str(cause) for cause in finding.change.causes]
    theories = [cause.theory and str(cause.theory) for cause in finding.change.causes]
    return {
        "causes": causes,
        "theories": theories,
        "changed": finding.change.said,
        **_scores(finding.scores),
        "share": share,
    }
