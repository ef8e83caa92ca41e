"""Notices of a job's end and of its budget, sent by webhook and e-mail without holding the job up."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.notices.announcer import Announcer as Announcer, announce as announce, announce_apart as announce_apart
    from hpo.notices.entries import (
        BUDGET_SHARE as BUDGET_SHARE,
        EVENTS as EVENTS,
        PREFIX as PREFIX,
        Email as Email,
        Webhook as Webhook,
        check_notices as check_notices,
        entries_from_json as entries_from_json,
        unset as unset,
    )

load_when_used(__name__)
