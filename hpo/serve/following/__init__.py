"""Following of jobs: one reader of the record for each, and its events for all who listen."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.following.followed import (
        FollowedJob as FollowedJob,
        ledger_columns as ledger_columns,
        report_columns as report_columns,
    )
    from hpo.serve.following.hub import Follower as Follower, Hub as Hub, HubTimes as HubTimes
    from hpo.serve.following.job_list import JobList as JobList, Line as Line
    from hpo.serve.following.stream import EventStream as EventStream

load_when_used(__name__)
