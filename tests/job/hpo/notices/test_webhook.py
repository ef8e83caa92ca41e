"""Posts to a real server: what it gets, when it gets it again, and what is not sent."""

from __future__ import annotations

import time

from hpo import Webhook
from hpo.notices.attempts import attempted
from hpo.notices.webhook import post
from tests.support.noticed import notice
from tests.support.receivers import Hook
from tests.support.refusals import mentions


def sent(hook: Webhook, seconds: float = 20.0) -> str:
    made = notice(hook, reason="<b>no</b>\r\nroom")
    return attempted(lambda step: post(hook, made, step), time.monotonic() + seconds)


def test_attempts_end_with_their_time(receiver: Hook) -> None:
    receiver.answers = [500]
    mentions(sent(Webhook(url=receiver.url), 0.5), 500, "attempt")
    assert len(receiver.posted) > 1
