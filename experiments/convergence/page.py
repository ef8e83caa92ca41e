"""The page of `experiments.why_it_broke`: verdict, changes that help, mechanisms, and ranges to tune."""

from __future__ import annotations

import math
from collections.abc import Sequence

from experiments.convergence.cases import ALONE, DISTRIBUTED, EXACT
from experiments.convergence.causes import BOOSTING, Cause, as_python, as_yaml
from experiments.convergence.diagnosis import Diagnosis, Finding
from experiments.convergence.experiment import Experiment
from experiments.convergence.mechanisms import mechanism
from experiments.convergence.verdicts import MATTERS, judgements
from experiments.shared import pictures
from experiments.shared.scores import Scores
from hpo.report import (
    Block,
    Code,
    Column,
    Facts,
    Figure,
    Measured,
    Page,
    Section,
    Table as Rows,
    Text,
    look,
    with_error,
)
from hpo.text import count

ALONE_COLOUR, DISTRIBUTED_COLOUR = look.GREY, look.BEST
COLOURS = (*look.SERIES, look.ROSE, look.OCHRE)


def page(experiment: Experiment, diagnosis: Diagnosis) -> Page:
    """The page of one diagnosis."""
    sections = [
        _what(experiment, diagnosis),
        _theories(diagnosis),
        *([_why(experiment, diagnosis), _tune(diagnosis)] if diagnosis.gap.is_one else []),
        _training(experiment),
        _noise(experiment),
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
    errors = "over seeds" if gap.alone.seed_error is not None else "from the rows that were evaluated"
    caption = f"Scores after the last {experiment.case.trainer.unit}, with their standard errors {errors}."
    alone = _row(experiment, "as on one worker", "", ALONE, gap.alone, None)
    distributed = _row(experiment, "as distributed", "", DISTRIBUTED, gap.distributed, None)
    score = Column(diagnosis.metric, digits=4)
    if not tried:
        rows = [alone, distributed]
        if diagnosis.exact is not None:
            rows.insert(1, _row(experiment, "one worker, exact trees", "", EXACT, diagnosis.exact, None))
        few = [[row[0], row[2], row[-1]] for row in rows]
        table = Rows(columns=["trained", score, "seconds"], rows=few, caption=caption)
        return Section("One worker and several", [table, *_alike(diagnosis)])
    rows = [_row(experiment, f.change.name, f.change.said, f.change.name, f.scores, f) for f in tried]
    caption += " Staleness is how many updates come between a worker's pull and its push; seconds are of one training."
    blocks: list[Block] = [
        Rows(
            columns=["changed back", "gives back, %", score, "to", "theory", "staleness", "seconds"],
            rows=[alone, *rows, distributed],
            caption=caption,
        )
    ]
    if diagnosis.gap.is_one:
        blocks.append(Text(diagnosis.adding_up))
    return Section("What gives it back", [*blocks, _picture(diagnosis, tried)])


def _alike(diagnosis: Diagnosis) -> list[Text]:
    """Why the number of workers makes no difference, where that is known."""
    if diagnosis.run.mode != BOOSTING:
        return []
    return [
        Text(
            "XGBoost sums the histograms of all workers' rows before it chooses a split: the number of workers changes "
            "nothing but the order in which numbers are added up."
        )
    ]


def _row(
    experiment: Experiment, name: str, change: str, key: str, scores: Scores, finding: Finding | None
) -> list[object]:
    outcomes = experiment.outcomes[key]
    share = finding and Measured(100 * finding.share.value, finding.share.error and 100 * finding.share.error)
    stale = sum(outcome.stale for outcome in outcomes) / len(outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    theories = finding.change.theories if finding else ""
    return [name, share, Measured(scores.mean, scores.error), change, theories, round(stale, 2), round(seconds, 1)]


def _theories(diagnosis: Diagnosis) -> Section:
    """What is known of each published theory."""
    rows = [
        [
            judgement.theory.value,
            judgement.verdict.value,
            judgement.why,
            judgement.theory.claim,
            judgement.theory.source,
        ]
        for judgement in judgements(diagnosis)
    ]
    caption = (
        f"Confirmed: the change that tests it gives back more than {MATTERS:.0%} of the gap by two standard errors. "
        "Ruled out: less than that by two, or there is no gap."
    )
    columns = ["theory", "here", "why", "what it says", "source"]
    return Section("The published theories", [Rows(columns=columns, rows=rows, caption=caption)])


def _picture(diagnosis: Diagnosis, tried: Sequence[Finding]) -> Figure:
    gap = diagnosis.gap
    dots = [
        pictures.Dot(label="one worker", value=gap.alone.mean, error=gap.alone.error, colour=ALONE_COLOUR),
        *(pictures.Dot(label=f.change.name, value=f.scores.mean, error=f.scores.error) for f in tried),
        pictures.Dot(
            label="distributed", value=gap.distributed.mean, error=gap.distributed.error, colour=DISTRIBUTED_COLOUR
        ),
    ]
    each = "Each enough" if len(diagnosis.enough) > 1 else "Enough"
    enough = f"{each} by itself: {diagnosis.named}" if diagnosis.enough else ""
    return pictures.scores(
        "gives-back",
        enough or "What each change gives back",
        "A dot is a mean over seeds, its line two standard errors to either side. What lies on the line of one worker "
        "gives the whole gap back.",
        dots,
        diagnosis.metric,
        {"one worker": gap.alone.mean, "distributed": gap.distributed.mean},
    )


def _why(experiment: Experiment, diagnosis: Diagnosis) -> Section:
    """How what was found does its harm, and what was not it."""
    outcomes = experiment.outcomes[DISTRIBUTED]
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
    parts = [Facts(found, caption="What does it"), Facts(not_it, caption="What does not")]
    return Section("Why", [part for part in parts if part.items])


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
    note = "Each range holds the value that gave something back." if diagnosis.ranges else ""
    return Section("What to tune", blocks, note=note)


def _training(experiment: Experiment) -> Section:
    """Learning curves, and how stale pushes were."""
    case = experiment.case
    # A model that is only evaluated otherwise learns alike, and curves of pairs hide those of what they are made of.
    tried = [name for name in experiment.outcomes if name in set(Cause) - {Cause.METRIC}]
    colours = {ALONE: ALONE_COLOUR, **dict(zip(tried, COLOURS, strict=False))}
    colours[DISTRIBUTED] = DISTRIBUTED_COLOUR
    lines = [
        pictures.Line(label=name, curves=[outcome.curve for outcome in experiment.outcomes[name]], colour=colour)
        for name, colour in colours.items()
    ]
    blocks: list[Block] = [
        pictures.learning(
            "learning",
            "How each way to train learns",
            "A line is the mean over seeds, its band goes from the least to the most of them.",
            lines,
            case.trainer.unit,
            case.metric,
        )
    ]
    stale = _staleness(experiment)
    if any(stale):
        mean = sum(old * pushes for old, pushes in stale.items()) / sum(stale.values())
        blocks.append(
            pictures.histogram(
                "staleness",
                f"The distributed run's gradients were {mean:.1f} updates old",
                "Updates that others made between a worker's pull and its push.",
                stale,
                "staleness, updates",
                DISTRIBUTED_COLOUR,
            )
        )
    return Section("In training", blocks)


def _noise(experiment: Experiment) -> Section | None:
    """How noisy gradients were, against their own size."""
    found = experiment.noise_scales
    if not found:
        return None
    unit = experiment.case.trainer.unit
    rows = [
        [name, of.rows, _number(of.last), _number(of.against_signal), of.signal[-1], of.noise[-1]]
        for name, of in found.items()
    ]
    columns: list[Column | str] = [
        "trained",
        "rows under way",
        Column("noise scale, rows", digits=0),
        "noise of a batch, times the squared gradient",
        "squared gradient",
        "variance of one example's",
    ]
    colours = {ALONE: ALONE_COLOUR, DISTRIBUTED: DISTRIBUTED_COLOUR}
    lines = [pictures.Line(label=name, curves=[of.by_unit], colour=colours[name]) for name, of in found.items()]
    picture = pictures.learning(
        "noise-scale",
        "How many rows it takes for a gradient to be as large as its noise",
        "With fewer rows than this a gradient is mostly noise. A line ends where no gradient is left beside its noise.",
        lines,
        unit,
        "noise scale, rows",
        logarithmic=True,
    )
    caption = (
        f"In the last {unit}; the noise scale is the simple one of McCandlish et al. 2018, arXiv 1812.06162. Where the "
        "squared gradient is below 0, which an unbiased estimate may be, no gradient is left beside its noise."
    )
    return Section("How noisy gradients were", [Rows(columns=columns, rows=rows, caption=caption), picture])


def _number(value: float) -> float | None:
    """A figure, where there is one."""
    return value if math.isfinite(value) else None


def _staleness(experiment: Experiment) -> dict[int, int]:
    """Pushes of the distributed run by their staleness, all seeds together."""
    counts: dict[int, int] = {}
    for outcome in experiment.outcomes[DISTRIBUTED]:
        for old, pushes in outcome.staleness.items():
            counts[int(old)] = counts.get(int(old), 0) + pushes
    return counts


def _link_seconds(experiment: Experiment) -> float:
    """That a push of the distributed run and its answer were on the way for, waiting for others included."""
    outcomes = experiment.outcomes[DISTRIBUTED]
    return sum(outcome.link_seconds for outcome in outcomes) / max(1, sum(outcome.pushes for outcome in outcomes))


def _shards(experiment: Experiment) -> Section | None:
    """The share of each label in each worker's rows."""
    shares = experiment.case.label_shares()
    if shares is None:
        return None
    labels = list(shares[0])
    rows = [[f"worker {rank}", *(100 * share for share in of.values())] for rank, of in enumerate(shares)]
    most = max(max(of[label] for of in shares) - min(of[label] for of in shares) for label in labels)
    caption = (
        "The share of each label among a worker's training rows, in percent; workers differ by at most "
        f"{100 * most:.1f} percentage points."
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
        ("the gap and its noise", with_error(gap.size, gap.error, 4)),
        ("standard error of one score from its rows", gap.alone.row_error),
    ]
    link = diagnosis.run.link
    if link is not None:
        facts.append(("link of a server, each way", f"{link:,.10g} bytes a second, simulated"))
        facts.append(("mean time of a push and its answer on it, ms", round(1000 * _link_seconds(experiment), 2)))
    if diverged:
        facts.append(("diverged", f"{count(diverged, 'training')}; counted as the worst score that was seen"))
    return Section("How it was measured", [Facts(facts)])
