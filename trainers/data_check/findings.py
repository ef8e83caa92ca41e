"""Findings: what a person should look at before a job is paid for, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainers.channels import label_name, separated_number
from trainers.checking import some_of
from trainers.data_check.duplicates import Overlap
from trainers.data_check.report import ChannelReport

RARE = 0.01
"""A class with a smaller share of the rows is rare."""
OFTEN = 0.01
"""Rows that repeat or contradict others are worth a word from this share on."""
DRIFT = 0.1
"""Shares of classes, or of missing values, that differ by more between channels."""

STAND_INS = (-999, -9999, -99999, -999999)
"""Numbers that often stand for a missing value."""

_MORE_THAN_USUAL = 1.5
_MOST_NAMED = 5
_FEWEST_COUNTED = 20
"""Rows from which on it is no chance that a column goes up by 1 in each."""


def findings(reports: Sequence[ChannelReport], overlaps: Sequence[Overlap]) -> Iterator[str]:
    """What is found in channels, the gravest first.

    Args:
        reports: of channels.
        overlaps: rows of others that stand in "train", too.
    """
    for report in reports:
        if report.rows and not report.loads:
            yield f"{report.name}: {report.rows:,} rows are fewer than the workers, of whom each needs one; use fewer"
        if report.weightless:
            yield f"{report.name}: every weight is 0, so no row counts; give some a weight above 0"
        for giveaway in report.giveaways[:_MOST_NAMED]:
            yield (
                f"{report.name}: column {giveaway.column!r} alone tells {giveaway.share:.1%} of the label; was "
                "it written after the label was known?"
            )
    yield from _overlaps({report.name: report for report in reports}, overlaps)
    train = next((report for report in reports if report.name == "train"), None)
    for report in reports:
        yield from _of_rows(report)
        if report is (train or report):
            yield from _of_columns(report)
    for report in reports:
        if train is not None and report is not train:
            yield from _of_pair(report, train)


def _overlaps(reports: Mapping[str, ChannelReport], overlaps: Sequence[Overlap]) -> Iterator[str]:
    """Rows of other channels in "train": many, where more of them are there than rows of "train" have a twin in it."""
    for overlap in overlaps:
        if not overlap.rows:
            continue
        share, usual = overlap.rows / reports[overlap.channel].rows, reports["train"].twins / reports["train"].rows
        found = (
            f"{overlap.channel}: {overlap.rows:,} rows ({share:.1%}) have the features of a row of train, "
            f"{overlap.alike:,} of them with its label; "
        )
        if share > _MORE_THAN_USUAL * usual:
            yield found + "a score on them says what was learnt by heart"
        else:
            yield found + f"so have {usual:.1%} of the rows within train, so the data repeat, not the split"


def _of_rows(report: ChannelReport) -> Iterator[str]:
    classes = report.about.get("classes") or ()
    if example := separated_number(classes):
        yield (
            f"{report.name}: labels such as {example!r} are numbers with thousands separators, and are read as "
            f"{len(classes)} classes; to predict numbers, write {example.replace(',', '')}"
        )
    if report.labels.least == report.labels.greatest:
        yield f"{report.name}: every label is {_class(report, report.labels.least)}; there is nothing to learn"
    for label, share in report.labels.shares().items() if not example else ():
        if share < RARE:
            rows = f"{report.labels.classes[label]:,} rows"
            yield f"{report.name}: class {_class(report, label)} has {rows}, {share:.2%} of all"
    if report.repeated >= OFTEN * report.rows:
        yield f"{report.name}: {report.repeated:,} of {report.rows:,} rows repeat another, label included"
    if report.contradictions >= OFTEN * report.rows:
        often = "once" if report.contradictions == 1 else f"{report.contradictions:,} times"
        yield f"{report.name}: rows of the same features have different labels, {often}"


def _of_columns(report: ChannelReport) -> Iterator[str]:
    if empty := [column.name for column in report.columns if column.kind == "nothing"]:
        yield f"{report.name}: {_columns(empty)} no value at all"
    if same := [column.name for column in report.columns if column.constant and not column.missing]:
        yield f"{report.name}: {_columns(same)} one value everywhere"
    if counters := [column.name for column in report.columns if column.counts_rows and report.rows >= _FEWEST_COUNTED]:
        looks, them = ("look like counters", "them") if len(counters) > 1 else ("looks like a counter", "it")
        yield (
            f"{report.name}: {_columns(counters)} in each row 1 more than in the row before, and {looks} of rows; if "
            f"so, leave {them} out with drop={counters[:_MOST_NAMED]!r}"
        )
    for number in STAND_INS:
        if names := [column.name for column in report.columns if column.least == number]:
            yield (
                f"{report.name}: {_columns(names)} {number} as the least value; where that stands for a missing "
                f"value, give missing={number}"
            )


def _of_pair(report: ChannelReport, train: ChannelReport) -> Iterator[str]:
    mine, theirs = report.labels.shares(), train.labels.shares()
    if mine and theirs:
        if new := [label for label in mine if label not in theirs]:
            yield f"{report.name}: train has no row of class {_classes(report, new)}"
        if lacking := [label for label in theirs if label not in mine]:
            yield f"{report.name}: it has no row of class {_classes(report, lacking)}"
        apart = sum(abs(mine.get(label, 0) - theirs.get(label, 0)) for label in {**mine, **theirs}) / 2
        if apart > DRIFT:
            yield f"{report.name}: {apart:.0%} of the rows would have to change class for the balance that train has"
    drifted = [
        f"{one.name!r} ({one.missing / report.rows:.0%} and {other.missing / train.rows:.0%})"
        for one, other in zip(report.columns, train.columns, strict=True)
        if abs(one.missing / report.rows - other.missing / train.rows) > DRIFT
    ]
    if drifted:
        yield f"{report.name}: missing values are another share here than in train: {some_of(drifted, _MOST_NAMED)}"


def _classes(report: ChannelReport, labels: Sequence[float]) -> str:
    return ", ".join(_class(report, label) for label in labels[:_MOST_NAMED])


def _class(report: ChannelReport, label: float) -> str:
    """A label as the user knows it: the text that it stands for, or its number."""
    return label_name(label, report.about.get("classes") or ())


def _columns(names: Sequence[str]) -> str:
    noun, verb = ("columns", "have") if len(names) > 1 else ("column", "has")
    return f"{noun} {some_of(list(map(repr, names)), _MOST_NAMED)} {verb}"
