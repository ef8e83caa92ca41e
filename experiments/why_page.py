"""The page of `experiments.why_it_broke`: the verdict, what gives the gap back, why, and what to tune."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments import pictures
from experiments.causes import Cause, as_python, as_yaml, mechanism
from experiments.diagnosis import Diagnosis, Finding, listed
from experiments.gap import Scores
from hpo.report import Code, Column, Facts, Figure, Measured, Page, Section, Text, look
from hpo.report import Table as Rows
from hpo.words import count

if TYPE_CHECKING:
    from experiments.why_it_broke import Experiment

ALONE_COLOUR, DISTRIBUTED_COLOUR = look.GREY, look.BEST


def page(experiment: Experiment, diagnosis: Diagnosis) -> Page:
    """The page of one diagnosis."""
    sections = [
        _what(experiment, diagnosis),
        *([_why(experiment, diagnosis)] if diagnosis.findings else []),
        *([_tune(diagnosis)] if diagnosis.gap.is_one else []),
        _training(experiment),
        _shards(experiment),
        _measured(experiment, diagnosis),
    ]
    return Page(
        title="Why it broke",
        verdict=diagnosis.verdict,
        sections=[section for section in sections if section is not None],
        subtitle=experiment.case.title,
    )


def _what(experiment: Experiment, diagnosis: Diagnosis) -> Section:
    """Scores and shares of the gap."""
    gap, tried = diagnosis.gap, [*diagnosis.findings, *([diagnosis.pair] if diagnosis.pair else [])]
    columns = ["changed back", "to", Column(diagnosis.metric, digits=4), "gives back", "staleness", "seconds"]
    rows = [
        _row(experiment, "nothing: as on one worker", "", "one worker", gap.alone, None),
        *(_row(experiment, f.change.name, f.change.said, f.change.name, f.scores, f) for f in tried),
        _row(experiment, "nothing: as distributed", "", "distributed", gap.distributed, None),
    ]
    errors = "over seeds" if gap.alone.seed_error is not None else "from the rows that were evaluated"
    caption = (
        f"Scores after the last {experiment.case.trainer.unit}, with their standard errors {errors}. Staleness: updates "
        "between a worker's pull and its push, in the mean."
    )
    blocks = [Rows(columns=columns, rows=rows, caption=caption)]
    if not diagnosis.findings:
        return Section("One worker and several", blocks)
    return Section("What gives it back", [*blocks, Text(diagnosis.adding_up), _picture(diagnosis, tried)])


def _row(
    experiment: Experiment, name: str, change: str, key: str, scores: Scores, finding: Finding | None
) -> list[object]:
    outcomes = experiment.outcomes[key]
    share = finding and Measured(100 * finding.share.value, finding.share.error and 100 * finding.share.error)
    stale = sum(outcome.stale for outcome in outcomes) / len(outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    return [name, change, Measured(scores.mean, scores.error), share, round(stale, 2), round(seconds, 1)]


def _picture(diagnosis: Diagnosis, tried: Sequence[Finding]) -> Figure:
    gap = diagnosis.gap
    dots = [
        pictures.Dot(label="one worker", value=gap.alone.mean, error=gap.alone.error, colour=ALONE_COLOUR),
        *(pictures.Dot(label=f.change.name, value=f.scores.mean, error=f.scores.error) for f in tried),
        pictures.Dot(
            label="distributed", value=gap.distributed.mean, error=gap.distributed.error, colour=DISTRIBUTED_COLOUR
        ),
    ]
    names = [finding.change.name for finding in diagnosis.enough]
    title = f"What gives it back: {listed(names)}" if names else "What each change gives back"
    return pictures.scores(
        "gives-back",
        title,
        "A dot is a mean over seeds, its line two standard errors to either side. What lies on the line of one worker "
        "gives the whole gap back.",
        dots,
        diagnosis.metric,
        {"one worker": gap.alone.mean, "distributed": gap.distributed.mean},
    )


def _why(experiment: Experiment, diagnosis: Diagnosis) -> Section:
    """How what was found does its harm, and what was not it."""
    outcomes = experiment.outcomes["distributed"]
    stale = sum(outcome.stale for outcome in outcomes) / len(outcomes) or None
    found, not_it = [], []
    for finding in diagnosis.findings:
        for cause in finding.change.causes:
            if finding.share.counts:
                why = mechanism(cause, diagnosis.run, stale)
                found.append((str(cause), f"{why.text} ({why.source})"))
            else:
                not_it.append((str(cause), f"gives back nothing: {finding.change.said}"))
    not_it += [(str(cause), reason) for cause, reason in diagnosis.ruled_out.items()]
    blocks = [
        Facts(items, caption=caption)
        for items, caption in ((found, "What does it"), (not_it, "What does not"))
        if items
    ]
    return Section("Why", blocks)


def _tune(diagnosis: Diagnosis) -> Section:
    """Ranges to copy, and what no range can put right."""
    advice = {
        Cause.SHARDS: "No range helps against shards that are not alike: shuffle the rows before they are written, or "
        "write fewer files than there are workers.",
        Cause.METRIC: "No range helps against a metric that is a mean over workers: sum counts with context.sum(), and "
        "divide the sums.",
    }
    blocks: list[Text | Code] = [Text(text) for cause, text in advice.items() if cause in diagnosis.found]
    if diagnosis.ranges:
        blocks += [
            Code(as_yaml(diagnosis.ranges), "YAML", caption="In a job file"),
            Code(as_python(diagnosis.ranges), "Python", caption="For a HyperparameterTuner"),
        ]
    note = "Each range holds the value that gave something back, and the one that broke." if diagnosis.ranges else ""
    return Section("What to tune", blocks, note=note)


def _training(experiment: Experiment) -> Section:
    """Learning curves, and how stale pushes were."""
    case = experiment.case
    names = sorted(experiment.outcomes, key=lambda name: name not in ("one worker", "distributed"))
    palette = [look.BLUE, look.GREEN, look.ROSE, look.OCHRE, look.VIOLET, "#3a6f8f", "#8c564b"]
    colours = {"one worker": ALONE_COLOUR, "distributed": DISTRIBUTED_COLOUR}
    colours |= dict(zip((name for name in names if name not in colours), palette, strict=False))
    lines = [
        pictures.Line(label=name, curves=[outcome.curve for outcome in experiment.outcomes[name]], colour=colours[name])
        for name in names
    ]
    blocks = [
        pictures.learning(
            "learning",
            "How each way to train learns",
            "A line is the mean over seeds, its band goes from the least to the most of them.",
            lines,
            case.trainer.unit,
            case.metric,
        )
    ]
    stale = {name: _staleness(experiment, name) for name in names}
    stale = {name: counts for name, counts in stale.items() if any(counts) and name != "one worker"}
    if stale:
        blocks.append(
            pictures.histograms(
                "staleness",
                "How old the parameters were that gradients were taken of",
                "Updates that others had made between a worker's pull and its push.",
                stale,
                "updates",
                colours,
            )
        )
    return Section("In training", blocks)


def _staleness(experiment: Experiment, name: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    for outcome in experiment.outcomes[name]:
        for old, pushes in outcome.staleness.items():
            counts[int(old)] = counts.get(int(old), 0) + pushes
    return counts


def _shards(experiment: Experiment) -> Section | None:
    """The share of each label in each worker's rows."""
    shares = experiment.case.label_shares()
    if shares is None:
        return None
    labels = list(shares[0])
    rows = [[f"worker {rank}", *(100 * share for share in of.values())] for rank, of in enumerate(shares)]
    most = max(max(of[label] for of in shares) - min(of[label] for of in shares) for label in labels)
    caption = (
        f"The share of each label among a worker's training rows, in percent, at most {len(labels)} labels. The workers "
        f"differ by at most {100 * most:.1f} percentage points."
    )
    return Section("Shards", [Rows([" ", *(Column(label, digits=1) for label in labels)], rows, caption=caption)])


def _measured(experiment: Experiment, diagnosis: Diagnosis) -> Section:
    """What the figures stand on."""
    case, gap = experiment.case, diagnosis.gap
    trainings = sum(len(each) for each in experiment.outcomes.values())
    how = "simulated in one process, on a clock of their own" if case.simulated else "processes on Ray"
    diverged = sum(outcome.diverged for each in experiment.outcomes.values() for outcome in each)
    facts: list[tuple[str, object]] = [
        ("trainings", f"{trainings}, with {count(len(experiment.seeds), 'seed')} from {experiment.seeds[0]}"),
        ("workers", f"{diagnosis.run.workers}, {how}"),
        ("mode", diagnosis.run.mode),
        ("hyperparameters", dict(case.trainer.hyperparameters)),
        ("rows to train on", len(case.channels["train"].read_whole().labels)),
        ("the gap and its noise", Measured(gap.size, gap.error)),
        ("standard error of one score from its rows", gap.alone.row_error),
    ]
    if diverged:
        facts.append(("diverged", f"{count(diverged, 'training')}; counted as the worst score that was seen"))
    return Section("How it was measured", [Facts(facts)])
