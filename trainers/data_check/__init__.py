"""Check of channels before training: columns, labels, repeated rows, giveaways, and what workers load."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.data_check.check import check_data as check_data
    from trainers.data_check.columns import ColumnSummary as ColumnSummary
    from trainers.data_check.labels import LabelSummary as LabelSummary
    from trainers.data_check.loading import Load as Load
    from trainers.data_check.report import ChannelReport as ChannelReport, DataReport as DataReport

load_when_used(__name__)
