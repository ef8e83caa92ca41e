"""The mailbox between a driver and its gangs, without Ray: who is told what, and that nobody waits in vain."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.mailboxes import LONG, SHORT, assignment, open_gang, played, refusal, settled, up
from tests.support.refusals import mentions
from trainers.gangs import mailbox as mailbox_module
from trainers.gangs.mailbox import LOST_STARTS, Mailbox
from trainers.gangs.messages import GangEnded, GangLost, GangUp, Goodbye, Halt, Progress, Report, Served


@pytest.fixture(autouse=True)
def takes_its_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor's process is ended 20 s behind its last line; this one, which has imported much, may take longer."""
    monkeypatch.setattr(mailbox_module, "end_surely", lambda: None)


# ---- a gang comes up


@played
async def test_a_gang_is_up_when_all_its_ranks_are(mailbox: Mailbox) -> None:
    await mailbox.opened(up("first", pid=102), rank=2, world_size=3)
    await mailbox.opened(up("first", pid=100), rank=0, world_size=3)
    assert await mailbox.exchange((), SHORT) == []
    await mailbox.opened(up("first", pid=101), rank=1, world_size=3)
    (event,) = await mailbox.exchange((), SHORT)
    assert event == GangUp(
        gang="gang",
        incarnation="first",
        pids=(100, 101, 102),
        hosts=("host-100", "host-101", "host-102"),
        devices=("2 cores",) * 3,
        opening={"load": 100.0},
    )
    assert await mailbox.exchange((), SHORT) == []


@played
async def test_ranks_of_two_incarnations_do_not_make_one_gang(mailbox: Mailbox) -> None:
    await mailbox.opened(up("first"), rank=0, world_size=2)
    await mailbox.opened(up("second", pid=201), rank=1, world_size=2)
    assert await mailbox.exchange((), SHORT) == []
    await mailbox.opened(up("second", pid=200), rank=0, world_size=2)
    (event,) = await mailbox.exchange((), SHORT)
    assert (event.incarnation, event.pids) == ("second", (200, 201))


# ---- orders


@played
async def test_an_order_reaches_every_rank_of_its_incarnation(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    waiting = await settled(mailbox.fetch("gang", "first", 0, LONG))
    await mailbox.order("gang", "first", assignment())
    late = await mailbox.fetch("gang", "first", 0, LONG)
    assert await waiting == late
    seen, order = late
    assert order == assignment()
    assert await mailbox.fetch("gang", "first", seen, SHORT) == (seen, None)


@played
async def test_one_after_another(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    seen, served = 0, []
    for trial in "abc":
        waiting = await settled(mailbox.fetch("gang", "first", seen, LONG))
        await mailbox.order("gang", "first", assignment(trial))
        seen, order = await waiting
        served.append(order.trial_id)
    assert served == ["a", "b", "c"]


@played
async def test_no_order_reaches_another_gang_or_incarnation(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await open_gang(mailbox, "theirs", gang="other")
    stale = await settled(mailbox.fetch("gang", "before", 0, LONG))
    other = await settled(mailbox.fetch("other", "theirs", 0, LONG))
    own = await settled(mailbox.fetch("gang", "first", 0, LONG))
    await mailbox.order("gang", "first", assignment())
    assert (await own)[1] == assignment()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not stale.done()
    assert not other.done()
    stale.cancel()
    other.cancel()


@played
async def test_an_order_for_an_incarnation_that_is_gone_is_dropped(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.post(GangLost(gang="gang", reason="killed"))
    await mailbox.order("gang", "first", assignment("lost"))
    assert await mailbox.fetch("gang", "first", 0, SHORT) == (0, None)
    await mailbox.opened(up("second"), 0, 1)
    assert await mailbox.fetch("gang", "second", 0, SHORT) == (0, None)
    await mailbox.order("gang", "first", assignment("late"))
    assert await mailbox.fetch("gang", "second", 0, SHORT) == (0, None)
    await mailbox.order("gang", "second", assignment("again"))
    assert (await mailbox.fetch("gang", "second", 0, LONG))[1] == assignment("again")


@played
async def test_what_the_last_incarnation_was_serving_is_not_served_by_the_next(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "first", assignment("first's"))
    await mailbox.post(GangLost(gang="gang", reason="killed"))
    await mailbox.opened(up("second"), 0, 1)
    waiting = await settled(mailbox.fetch("gang", "second", 0, LONG))
    assert not waiting.done()
    await mailbox.order("gang", "second", assignment("second's"))
    assert (await waiting)[1] == assignment("second's")


@played
async def test_a_rank_that_waits_before_its_gang_is_up_is_woken_by_the_first_order(mailbox: Mailbox) -> None:
    await mailbox.opened(up("first"), 0, 2)
    early = await settled(mailbox.fetch("gang", "first", 0, LONG))
    await mailbox.opened(up("first"), 1, 2)
    await mailbox.order("gang", "first", assignment())
    assert (await early)[1] == assignment()


# ---- goodbye


@pytest.mark.parametrize("incarnation", ["", "first", "of long ago"])
@played
async def test_goodbye_is_for_every_incarnation_now_and_later(mailbox: Mailbox, incarnation: str) -> None:
    await open_gang(mailbox, "first")
    waiting = [await settled(mailbox.fetch("gang", "first", 0, LONG)) for _ in range(2)]
    await mailbox.order("gang", incarnation, Goodbye())
    for task in waiting:
        assert isinstance((await task)[1], Goodbye)
    await mailbox.post(GangLost(gang="gang", reason="killed"))
    await mailbox.opened(up("second"), 0, 1)
    for name, seen in (("first", 1), ("second", 0), ("second", 99)):
        assert isinstance((await mailbox.fetch("gang", name, seen, LONG))[1], Goodbye)


@played
async def test_goodbye_to_a_gang_that_is_not_up_yet_is_kept_and_an_order_does_not_undo_it(mailbox: Mailbox) -> None:
    await mailbox.order("gang", "", Goodbye())
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "first", assignment())
    assert isinstance((await mailbox.fetch("gang", "first", 0, LONG))[1], Goodbye)
    await open_gang(mailbox, "theirs", gang="other")
    assert await mailbox.fetch("other", "theirs", 0, SHORT) == (0, None)


# ---- refusals


@played
async def test_an_assignment_is_refused_when_every_rank_refuses_it(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first", world_size=3)
    await mailbox.order("gang", "first", assignment())
    second = await settled(mailbox.refuse(refusal("from rank 1"), 1, 3, LONG))
    third = await settled(mailbox.refuse(refusal("from rank 2"), 2, 3, LONG))
    assert not second.done()
    assert await mailbox.exchange((), SHORT) == []
    assert await mailbox.refuse(refusal("from rank 0"), 0, 3, LONG)
    assert await second
    assert await third
    assert await mailbox.exchange((), SHORT) == [refusal("from rank 0")]


@played
async def test_of_refusals_the_one_that_tells_of_the_checkpoint_counts(mailbox: Mailbox) -> None:
    """Others have waited in vain for that rank."""
    await open_gang(mailbox, "first")
    spoilt, away = (replace(refusal("from rank 1"), **{kind: True}) for kind in ("spoilt", "away"))
    for told in (spoilt, away):
        await mailbox.order("gang", "first", assignment())
        waiting = await settled(mailbox.refuse(told, 1, 2, LONG))
        assert await mailbox.refuse(refusal("from rank 0"), 0, 2, LONG)
        assert await waiting
        assert await mailbox.exchange((), SHORT) == [told]


@played
async def test_a_trial_that_breaks_a_worker_fails_and_its_gang_is_lost_in_one_breath(mailbox: Mailbox) -> None:
    """Else the driver would give the gang another trial, which would pay for it; no rank's own end is told again."""
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "first", assignment())
    waiting = await settled(mailbox.refuse(replace(refusal("assertion"), broken=True), 1, 2, LONG))
    assert await mailbox.refuse(refusal("assertion"), 0, 2, LONG)
    assert await waiting
    told = await mailbox.exchange([("gang", "first", assignment("next"))], SHORT)
    assert told == [refusal("assertion"), GangLost(gang="gang", reason="rank 1: assertion")]
    assert await mailbox.fetch("gang", "first", 1, SHORT) == (1, None)
    await mailbox.post(GangLost(gang="gang", reason="rank 1: BrokenWorkerError"))
    assert await mailbox.exchange((), SHORT) == []
    await open_gang(mailbox, "second")


@played
async def test_an_error_that_one_rank_has_alone_is_not_the_trials(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "first", assignment())
    assert not await mailbox.refuse(refusal(), 1, 2, SHORT)
    assert not await mailbox.refuse(refusal(), 1, 2, SHORT)
    assert await mailbox.exchange((), SHORT) == []


@played
async def test_refusals_of_the_assignment_before_do_not_count(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "first", assignment("a"))
    assert not await mailbox.refuse(refusal(), 0, 2, SHORT)
    await mailbox.order("gang", "first", assignment("b"))
    assert not await mailbox.refuse(refusal(), 1, 2, SHORT)
    assert await mailbox.exchange((), SHORT) == []
    for _ in range(2):  # And each that all refuse is told, one after another.
        await mailbox.order("gang", "first", assignment("c"))
        waiting = await settled(mailbox.refuse(refusal(), 1, 2, LONG))
        assert await mailbox.refuse(refusal(), 0, 2, LONG)
        assert await waiting
        assert len(await mailbox.exchange((), SHORT)) == 1
    await mailbox.order("gang", "first", assignment("d"))
    assert not await mailbox.refuse(refusal(), 1, 2, SHORT)


@played
async def test_refusals_of_another_gang_do_not_count(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await open_gang(mailbox, "theirs", gang="other")
    waiting = await settled(mailbox.refuse(refusal(), 0, 2, LONG))
    assert not await mailbox.refuse(refusal(gang="other"), 1, 2, SHORT)
    assert not waiting.done()
    waiting.cancel()


# ---- what the driver hears


@played
async def test_a_loss_is_told_once_an_incarnation(mailbox: Mailbox) -> None:
    lost = GangLost(gang="gang", reason="rank 1 was killed")
    await mailbox.post(lost)
    # It was never up: its start failed, and Train tells that otherwise.
    assert await mailbox.exchange((), SHORT) == []
    for incarnation in ("first", "second"):
        await open_gang(mailbox, incarnation)
        await mailbox.post(lost)
        await mailbox.post(GangLost(gang="gang", reason="rank 0 broke in turn"))
        assert await mailbox.exchange((), SHORT) == [lost]


@played
async def test_a_gang_whose_workers_are_never_ready_ends(mailbox: Mailbox) -> None:
    """Ray Train would start them for ever: where they run out of memory as they load, say."""
    for came_up in (False, True):
        if came_up:
            await open_gang(mailbox, "first", gang="other")
            await mailbox.post(GangLost(gang="other", reason="rank 0 was killed"))
            assert [type(event) for event in await mailbox.exchange((), SHORT)] == [GangLost]
        gang = "other" if came_up else "gang"
        for _ in range(LOST_STARTS - 1):
            await mailbox.post(GangLost(gang=gang, reason="rank 1 was killed"))
            assert await mailbox.exchange((), SHORT) == []
        for _ in range(2):
            await mailbox.post(GangLost(gang=gang, reason="rank 1 was killed"))
        [ended] = await mailbox.exchange((), SHORT)
        assert isinstance(ended, GangEnded)
        assert ended.final
        mentions(ended.error, "lost", LOST_STARTS, "rank 1 was killed", "hpo data check")


@played
async def test_events_come_in_order_and_once(mailbox: Mailbox) -> None:
    told = [
        Progress(gang="gang", trial_id="trial", reports=(Report(step=1, metrics={}),)),
        Served(gang="gang", trial_id="trial"),
        GangEnded(gang="other"),
    ]
    for event in told:
        await mailbox.post(event)
    assert await mailbox.exchange((), LONG) == told
    assert await mailbox.exchange((), SHORT) == []


@played
async def test_a_wait_for_events_runs_out(mailbox: Mailbox) -> None:
    assert await mailbox.exchange((), SHORT) == []
    assert await mailbox.exchange((), 0.0) == []


@played
async def test_every_event_wakes_who_waits(mailbox: Mailbox) -> None:
    """Also those that are posted while nobody waits, between two waits, and several at once."""
    heard: list[str] = []
    posted = 0
    for burst in (1, 3, 0, 2, 1) * 20:
        waiting = await settled(mailbox.exchange((), LONG)) if burst else None
        for _ in range(burst):
            await mailbox.post(GangEnded(gang=f"{posted}"))
            posted += 1
        if waiting:
            heard += [event.gang for event in await waiting]
        if burst == 3:
            await mailbox.post(GangEnded(gang=f"{posted}"))
            posted += 1
    while len(heard) < posted:
        heard += [event.gang for event in await mailbox.exchange((), LONG)]
    assert heard == [str(number) for number in range(posted)]


@played
async def test_an_event_after_a_wait_that_ran_out_is_heard(mailbox: Mailbox) -> None:
    assert await mailbox.exchange((), SHORT) == []
    for _ in range(2):
        waiting = await settled(mailbox.exchange((), LONG))
        assert not waiting.done()  # Also after an event was taken: to ask again is to wait again.
        await mailbox.post(GangEnded(gang="gang"))
        assert await waiting == [GangEnded(gang="gang")]


# ---- orders and results that travel with the polls


@played
async def test_orders_go_out_before_their_driver_waits(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await open_gang(mailbox, "theirs", gang="other")
    ranks = [await settled(mailbox.fetch(*gang, 0, LONG)) for gang in (("gang", "first"), ("other", "theirs"))]
    orders = [
        ("gang", "first", assignment("a")),
        ("other", "theirs", assignment("b")),
        ("gang", "before", assignment("stale")),
    ]
    driver = await settled(mailbox.exchange(orders, LONG))
    assert [(await rank)[1] for rank in ranks] == [assignment("a"), assignment("b")]
    assert not driver.done()
    served = Served(gang="gang", trial_id="a")
    await mailbox.post(served)
    assert await driver == [served]


@played
async def test_an_assignment_is_two_calls(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first", world_size=1)
    rank = await settled(mailbox.fetch("gang", "first", 0, LONG))
    for trial in "abc":
        driver = await settled(mailbox.exchange([("gang", "first", assignment(trial))], LONG))
        seen, order = await rank
        assert order == assignment(trial)
        rank = await settled(mailbox.fetch("gang", "first", seen, LONG, Served(gang="gang", trial_id=trial)))
        assert await driver == [Served(gang="gang", trial_id=trial)]
        assert not rank.done()
    rank.cancel()


@played
async def test_a_result_is_told_also_where_its_gang_has_been_told_goodbye(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.order("gang", "", Goodbye())
    served = Served(gang="gang", trial_id="trial")
    assert isinstance((await mailbox.fetch("gang", "first", 0, LONG, served))[1], Goodbye)
    assert await mailbox.exchange((), SHORT) == [served]


# ---- halting


@played
async def test_a_halt_is_for_what_was_ordered_last_and_for_no_other_worker_group(mailbox: Mailbox) -> None:
    await open_gang(mailbox, "first")
    await mailbox.exchange([("gang", "first", assignment())], SHORT)
    assert not await mailbox.halted("gang")
    await mailbox.exchange([("gang", "gone", Halt())], SHORT)
    assert not await mailbox.halted("gang")
    await mailbox.exchange([("gang", "first", Halt())], SHORT)
    assert await mailbox.halted("gang")
    assert (await mailbox.fetch("gang", "first", 0, SHORT))[1] == assignment()
    await mailbox.exchange([("gang", "first", assignment("next"))], SHORT)
    assert not await mailbox.halted("gang")
    await mailbox.exchange([("gang", "first", Halt())], SHORT)
    await mailbox.post(GangLost(gang="gang", reason="killed"))
    await mailbox.exchange((), SHORT)
    await open_gang(mailbox, "second")
    assert not await mailbox.halted("gang")
