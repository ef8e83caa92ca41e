"""`check_data`: one pass over each channel, and what is to be said of all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from trainers.channels import WEIGHT, Channel, agree
from trainers.data_check.columns import ColumnScan
from trainers.data_check.duplicates import RowHashes
from trainers.data_check.findings import findings
from trainers.data_check.giveaways import Sample, giveaways
from trainers.data_check.labels import LabelScan
from trainers.data_check.loading import COUNTS, loads
from trainers.data_check.report import ChannelReport, DataReport


def check_data(channels: Mapping[str, Channel], *, workers: int | None = None) -> DataReport:
    """Reads each channel once, a block at a time, and says what is in it.

    It holds 16 bytes for each row of all channels, and a sample of `giveaways.MOST_ROWS` rows.

    Args:
        channels: by name; those beside "train" are compared with it, where it is there.
        workers: of the gang that will train; None tells of gangs of `COUNTS`.

    Raises:
        ConfigurationError: a channel is a folder, or a Ray Dataset.
        DataError: rows are damaged, or columns of channels differ; naming channel, file and row.
    """
    counts = COUNTS if workers is None else (workers,)
    reports, hashes, channels = [], {}, agree(channels)
    for name, channel in channels.items():
        if "train" in channels:
            channel.check_like(channels["train"])
        report, hashes[name] = _scan(channel, counts)
        reports.append(report)
    overlaps = tuple(
        each.overlap(name, hashes["train"]) for name, each in hashes.items() if name != "train" and "train" in hashes
    )
    return DataReport(channels=tuple(reports), overlaps=overlaps, findings=tuple(findings(reports, overlaps)))


def _scan(channel: Channel, counts: tuple[int, ...]) -> tuple[ChannelReport, RowHashes]:
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401  # Which takes its time, too, and each process once.

    columns, labels, hashes, sample = ColumnScan(), LabelScan(), RowHashes(), Sample()
    names, seconds, weighs = None, 0.0, False
    started = time.perf_counter()
    for table in channel.pieces():
        seconds += time.perf_counter() - started
        names = table.feature_names
        if len(table.labels):
            weighs = weighs or WEIGHT not in table.said or bool((table.said[WEIGHT] > 0).any())
            columns.add(table.features)
            labels.add(table.labels)
            hashes.add(table.features, table.labels)
            sample.add(table.features, table.labels)
        started = time.perf_counter()
    summary = labels.summary()
    hashes.sort()
    found = columns.summaries(names)
    report = ChannelReport(
        name=channel.name,
        about=channel.describe(),
        rows=columns.rows,
        columns=found,
        labels=summary,
        repeated=hashes.repeated,
        twins=hashes.twins,
        contradictions=hashes.contradictions,
        giveaways=giveaways(sample, names, classes=bool(summary.classes)),
        loads=loads(channel, columns.rows, len(found), seconds, counts),
        weightless=columns.rows > 0 and not weighs,
    )
    return report, hashes
