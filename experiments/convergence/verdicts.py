"""The verdict of a run on each published theory: confirmed, ruled out, or not testable here; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from experiments.convergence.causes import BOOSTING, Cause
from experiments.convergence.diagnosis import Diagnosis, Finding, percent
from experiments.convergence.effects import Gap
from experiments.convergence.published_theories import Theory
from experiments.shared.scores import CERTAIN
from hpo.report import with_error

MATTERS = 0.1
"""The share of a gap from which on a change gives back enough for its theory to be held for true."""


_MORE = "give more --seeds"


class Verdict(StrEnum):
    """What is known of a theory."""

    CONFIRMED = "confirmed"
    RULED_OUT = "ruled out"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one run says of one theory.

    Args:
        theory: which.
        cause: whose change tested it; None where it is not about a cause of these.
        verdict: what is known of it.
        why: the figures, or what is missing for them.
    """

    theory: Theory
    cause: Cause | None
    verdict: Verdict
    why: str

    def to_json(self) -> dict[str, Any]:
        """For result.json."""
        return {
            "theory": str(self.theory),
            "claim": self.theory.claim,
            "source": self.theory.source,
            "tested_by": self.cause and str(self.cause),
            "verdict": str(self.verdict),
            "why": self.why,
        }


def judgements(diagnosis: Diagnosis) -> list[Judgement]:
    """What a diagnosis says of each theory, in their order."""
    return [_of(theory, diagnosis) for theory in Theory]


def _of(theory: Theory, diagnosis: Diagnosis) -> Judgement:
    if theory is Theory.METHOD:
        verdict, why = _method(diagnosis)
        return Judgement(theory=theory, cause=None, verdict=verdict, why=why)
    [cause] = (cause for cause in Cause if cause.theory is theory)
    finding = next((found for found in diagnosis.findings if found.change.causes == (cause,)), None)
    if cause in diagnosis.ruled_out:
        verdict, why = Verdict.NOT_TESTABLE, diagnosis.ruled_out[cause]
    elif not diagnosis.gap.is_one:
        verdict, why = Verdict.RULED_OUT, f"nothing was lost that it would explain ({_size(diagnosis.gap)})"
    elif finding is None:
        verdict, why = Verdict.NOT_TESTABLE, "nothing was trained to test it"
    else:
        verdict, why = _by(finding)
    return Judgement(theory=theory, cause=cause, verdict=verdict, why=why)


def _by(finding: Finding) -> tuple[Verdict, str]:
    """By what one change gives back: whether two standard errors leave it above or below what matters."""
    why = f"{finding.change.said}: gives back {percent(finding.share)}"
    if finding.share.error is None:
        return Verdict.NOT_TESTABLE, f"{why}, and how sure that is is not known; {_MORE}"
    share, noise = finding.share.value, CERTAIN * finding.share.error
    if share - noise > MATTERS:
        return Verdict.CONFIRMED, why
    if share + noise < MATTERS:
        return Verdict.RULED_OUT, why
    return Verdict.NOT_TESTABLE, f"{why}, too unsure to tell; {_MORE}"


def _method(diagnosis: Diagnosis) -> tuple[Verdict, str]:
    """Whether it costs anything to go without the exact trees that do not distribute."""
    exact, usual = diagnosis.exact, diagnosis.gap.alone
    if diagnosis.run.mode != BOOSTING:
        return Verdict.NOT_TESTABLE, "the run trains no trees"
    if exact is None:
        return Verdict.NOT_TESTABLE, "XGBoost does not train this run by tree_method exact, on one worker either"
    lost = Gap(alone=exact, distributed=usual, maximize=diagnosis.gap.maximize)
    why = (
        f"on one worker, tree_method exact comes to {exact.text}, and the histograms that do distribute to "
        f"{usual.text} ({_size(lost)})"
    )
    if math.isnan(lost.error):
        return Verdict.NOT_TESTABLE, f"{why}, and how sure that is is not known; {_MORE}"
    return (Verdict.CONFIRMED if lost.is_one else Verdict.RULED_OUT), why


def _size(gap: Gap) -> str:
    return f"the difference is {with_error(gap.size, gap.error, 4)}"
