"""PyTorch gangs on a real Ray cluster: parameter servers that die, workers that die, and the same bits in the end."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.networks import assignment, close, servers, state, train_adam
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.gang import WORDS, Pool, pool, straight, wait_until  # noqa: F401  # Fixtures.
from trainers.gangs.messages import GangLost, GangUp, Progress, Segment, Served


def beside(worker: int, title: bytes = b"ray::ServerActor") -> list[int]:
    """Processes of the same node of the same cluster as a worker: others may run tests on this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or not (entry / "cmdline").read_bytes().startswith(title):
                continue
            if parent(int(entry.name)) == parent(worker):
                found.append(int(entry.name))
        except OSError:
            continue  # It ended meanwhile.
    return found


def loaded(pid: int) -> str:
    """The libraries that a process has loaded; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_real_servers_give_what_the_simulated_ones_give_to_the_last_bit(straight: Segment, tmp_path: Path) -> None:
    [simulated] = servers(train_adam, assignment(tmp_path, stop=3, name="simulated", num_workers=2, **WORDS))
    close(state(straight)["model"], state(simulated)["model"], 0.0)
    account = straight.details["parameter_server"]
    assert account["updates"] * 2 == account["pushes"] == 2 * 2 * 6
    assert account["staleness"] == {"0": account["pushes"]}
    assert account["clock"] == "wall"
    assert account["waiting_seconds"] > 0


@pytest.mark.parametrize(("title", "library"), [("ray::TrainController", "libtorch"), ("ray::Mailbox", "pandas/")])
def test_what_hands_on_alone_imports_nothing_for_it(pool: Pool, title: str, library: str) -> None:
    """It would take a second of a core, and memory, at each start: of PyTorch, or of Ray Train, which brings pandas."""
    worker = pool.up.pids[0]
    assert library in loaded(worker)
    found = [loaded(pid) for pid in beside(worker, title.encode())]
    # Those of an earlier test's gang may still be on their way out.
    assert any(maps and library not in maps for maps in found)


@pytest.mark.fault
@pytest.mark.parametrize("what", ["server", "worker"])
def test_a_trial_goes_on_from_its_last_checkpoint_when_something_dies(
    pool: Pool, straight: Segment, tmp_path: Path, what: str
) -> None:
    pool.serve(assignment(tmp_path, stop=1, name="killed", **WORDS))
    gate = tmp_path / "gate"
    gate.touch()
    second = assignment(tmp_path, start=1, stop=3, name="killed", **WORDS, gate=str(gate))
    pool.gangs.assign(pool.up.gang, second)
    pool.gangs.events(0.1)  # Hands it out.
    wait_until("a few pushes are made", lambda: all(Path(f"{gate}-{rank}").exists() for rank in range(2)))
    victims = beside(pool.up.pids[0]) if what == "server" else [pool.up.pids[1]]
    os.kill(victims[-1], signal.SIGKILL)
    gate.unlink()
    lost = pool.until(lambda event: isinstance(event, GangLost | Served))
    assert isinstance(lost, GangLost), lost
    pool.until(lambda event: isinstance(event, GangUp))
    served = pool.serve(second)
    assert served.segment, served.traceback
    close(state(served.segment)["model"], state(straight)["model"], 0.0)
    torch.testing.assert_close(
        state(served.segment)["optimizer"]["state"], state(straight)["optimizer"]["state"], rtol=0, atol=0
    )


def test_asynchronous_workers_are_stale_and_a_straggler_is_told(pool: Pool, tmp_path: Path) -> None:
    words = {**WORDS, "mode": "async", "delay_ms": [0.0, 5.0], "stop": 1}
    served = pool.serve(assignment(tmp_path, name="async", **words))
    assert served.segment, served.traceback
    account = served.segment.details["parameter_server"]
    assert account["updates"] == account["pushes"] == 12
    assert sum(account["staleness"].values()) == 12
    mentions(account["delay"], "simulated", "ms", "[0.0, 5.0]")


def test_a_gang_that_is_halted_goes_on_to_the_same_bits(pool: Pool, tmp_path: Path) -> None:
    words = {**WORDS, "seconds": 0.1}
    long = assignment(tmp_path, stop=500, name="halted", **words)
    pool.gangs.assign(pool.up.gang, long)
    pool.until(lambda event: isinstance(event, Progress))
    pool.gangs.halt(pool.up.gang)
    served = pool.until(lambda event: isinstance(event, Served))
    assert isinstance(served, Served)
    assert served.segment, served.traceback
    reached = served.segment.reached
    assert reached < long.stop
    rest = replace(long, start=reached, stop=reached + 1, checkpoint=served.segment.checkpoint)
    segment = pool.serve(rest).segment
    assert segment
    [straight] = servers(train_adam, assignment(tmp_path, stop=reached + 1, name="straight", num_workers=2, **WORDS))
    assert served.segment.reports + segment.reports == straight.reports
    close(state(segment)["model"], state(straight)["model"], 0.0)
