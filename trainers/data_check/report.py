"""What is in channels: a report of each, and of what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainers.data_check.columns import ColumnSummary
from trainers.data_check.duplicates import Overlap
from trainers.data_check.giveaways import Giveaway
from trainers.data_check.labels import LabelSummary
from trainers.data_check.loading import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """What is in a channel.

    Args:
        name: the channel's.
        about: its kind, files and columns; see `Channel.describe`.
        rows: how many.
        columns: its features.
        labels: its labels.
        repeated: rows that another row before is alike, in features and label.
        twins: rows that have the features of another row.
        contradictions: labels beyond the first that rows of the same features have.
        giveaways: columns that tell the label alone.
        loads: what a worker of gangs of several sizes loads.
        weightless: its rows have weights, which are all 0.
    """

    name: str
    about: Mapping[str, Any]
    rows: int
    columns: tuple[ColumnSummary, ...]
    labels: LabelSummary
    repeated: int
    twins: int
    contradictions: int
    giveaways: tuple[Giveaway, ...]
    loads: tuple[Load, ...]
    weightless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport:
    """What is in all channels.

    Args:
        channels: a report of each.
        overlaps: rows of others that stand in "train", too.
        findings: what a person should look at before paying for a job, a sentence each; none are good.
    """

    channels: tuple[ChannelReport, ...]
    overlaps: tuple[Overlap, ...]
    findings: tuple[str, ...]
