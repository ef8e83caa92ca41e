"""Programs that are started again after a pause: whether they went on or began again, and how their units count."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.refusals import refuses
from tests.support.script_programs import assignment, values
from tests.support.trainers.script.restarts import (
    ANEW,
    EXPECTED,
    ON,
    PRINTS,
    REPORTS,
    check_values,
    three,
    train,
)
from trainers import TrialError
from trainers.script import checkpoint_reads
from trainers.script.checkpoint_reads import CheckpointReads
from trainers.script.program import ScriptProgram

Opened = Callable[..., ScriptProgram]


@pytest.mark.parametrize(("start", "report"), [(ANEW, PRINTS), (ON, REPORTS)])
def test_each_unit_has_the_value_of_a_run_without_pauses(
    opened: Opened, tmp_path: Path, start: str, report: str
) -> None:
    """Both ways to begin, and both to report; in all pairs: tests/long/trainers/script/test_restarts.py."""
    check_values(opened(train(start, report)), tmp_path, goes_on=start == ON)


EVERY_FOURTH = """
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
state = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
epoch, weight = begun = json.load(open(state)) if os.path.exists(state) else (0, 0.0)
while epoch < args.epochs:
    epoch, weight = epoch + 1, weight + 0.5 * (1 - weight)
    print(f"acc={weight:.6f}", flush=True)
    if epoch % 4 == 0:
        json.dump([epoch, weight], open(state, "w"))
    if (begun[0], epoch) in ((0, 6), (4, 11)):
        time.sleep(60)
"""
"""Saves at each fourth unit, and waits behind the units at which it is paused."""


def test_a_program_that_saves_at_each_fourth_unit_is_counted_from_there(opened: Opened, tmp_path: Path) -> None:
    program = opened(EVERY_FOURTH, grace_period_s=1)
    first = program.train(assignment(tmp_path, 6, epochs=13), print)
    second = program.train(assignment(tmp_path, 11, first, epochs=13), print)
    third = program.train(assignment(tmp_path, 13, second, epochs=13), print)
    assert values(first, second, third) == [(step, pytest.approx(1 - 0.5**step, abs=1e-6)) for step in range(1, 14)]
    again = [
        (each.details.get("units_trained_again"), each.details.get("went_on_from_unit")) for each in (second, third)
    ]
    assert again == [(2, 4), (3, 8)]
    assert not any("units" in each.details.get("warnings", {}) for each in (second, third))


def test_without_inotify_the_first_values_tell(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_reads.ctypes, "CDLL", lambda *_, **__: object())
    segments = three(opened(train(ANEW)), tmp_path)
    assert values(segments[2]) == EXPECTED[3:]
    assert segments[2].details["units_trained_again"] >= 3


@pytest.mark.parametrize("report", [PRINTS, REPORTS])
def test_an_evaluation_that_is_printed_again_is_no_unit(opened: Opened, tmp_path: Path, report: str) -> None:
    """The program evaluates whenever it starts, as one that evaluates before its first step does."""
    program = opened(train(ON, report, before=report))
    segments = three(program, tmp_path)
    assert values(*segments) == [(step, pytest.approx(1 - 0.5 ** (step - 1), abs=1e-6)) for step in range(1, 6)]
    assert not any("units_trained_again" in each.details for each in segments)


def test_a_constant_metric_ends_with_the_program(opened: Opened, tmp_path: Path) -> None:
    segments = three(opened(train(ON, "print('acc=0.5', flush=True)")), tmp_path)
    assert values(*segments) == [(step, 0.5) for step in range(1, 6)]


def test_a_fork_goes_on_from_its_parent_s_weights_or_is_seen_to_begin_again(opened: Opened, tmp_path: Path) -> None:
    on = opened(train(ON))
    parent = on.train(assignment(tmp_path, 2, epochs=5, seconds=2), print)
    fork = on.train(assignment(tmp_path, 4, parent, epochs=5, eta=0.25, seconds=0.1), print)
    assert values(fork) == [(3, pytest.approx(0.8125, abs=1e-6)), (4, pytest.approx(0.859375, abs=1e-6))]
    assert fork.details.keys() <= {"no_model"}
    (tmp_path / "other").mkdir()
    (tmp_path / "source" / "train.py").unlink()
    (tmp_path / "source").rmdir()
    anew = opened(train(ANEW))
    parent = anew.train(assignment(tmp_path / "other", 2, epochs=5, seconds=2), print)
    fork = anew.train(assignment(tmp_path / "other", 4, parent, epochs=5, eta=0.25, seconds=0.1), print)
    assert values(fork) == [(step, pytest.approx(1 - 0.75**step, abs=1e-6)) for step in (3, 4)]
    assert fork.details["units_trained_again"] == 2


KEPT = """
import json, os, warmband
args = warmband.hyperparameters()
state = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
epoch = {start}
while epoch < args["epochs"]:
    epoch += 1
    json.dump(epoch, open(state, "w"))
    if warmband.report({{"validation:accuracy": epoch / 10}}{step}):
        break
"""


def test_what_stays_loaded_fails_where_it_begins_again_without_a_step(opened: Opened, tmp_path: Path) -> None:
    program = opened(KEPT.format(start="0", step=""), keep_loaded=True)
    first = program.train(assignment(tmp_path, 2), print)
    with refuses(TrialError, field="SM_CHECKPOINT_DIR", value=2, remedy="step"):
        program.train(assignment(tmp_path, 4, first), print)


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("json.load(open(state)) if os.path.exists(state) else 0", ""),
        ("0", ", step=epoch"),
        ("0", ", step=epoch - 1"),
    ],
)
def test_what_stays_loaded_goes_on_from_its_checkpoint_or_says_its_step(
    opened: Opened, tmp_path: Path, start: str, step: str
) -> None:
    program = opened(KEPT.format(start=start, step=step), keep_loaded=True)
    first = program.train(assignment(tmp_path, 2), print)
    second = program.train(assignment(tmp_path, 4, first), print)
    assert values(first, second) == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]


def test_a_watch_tells_reading_from_writing(tmp_path: Path) -> None:
    def watched(*acts: Callable[[Path], object]) -> Collection[str] | None:
        folder = tmp_path / str(time.monotonic_ns())
        (folder / "deep").mkdir(parents=True)
        path = folder / "deep" / "state"
        path.write_text("old")
        watch = CheckpointReads(folder)
        for act in acts:
            act(path)
        return watch.found()

    def replaced(path: Path) -> None:
        path.with_suffix(".new").write_text("new")
        path.with_suffix(".new").rename(path)

    def written_and_read(path: Path) -> None:
        path.with_suffix(".other").write_text("new")
        path.with_suffix(".other").read_text()

    def moved(path: Path) -> None:
        path.rename(path.with_suffix(".old"))

    assert watched(Path.read_text) == {"deep/state"}
    assert watched(lambda path: path.open("r+b").read(1)) == {"deep/state"}
    assert watched(moved, lambda path: path.with_suffix(".old").read_text()) == {"deep/state"}
    with ExitStack() as stack:
        assert watched(lambda path: stack.enter_context(path.open("a"))) is None
    for acts in (
        [],
        [lambda path: list(path.parent.iterdir()), Path.stat, Path.exists],
        [lambda path: path.write_text("new"), Path.read_text],
        [lambda path: path.open("a").write("more")],
        [replaced, Path.read_text],
        [Path.unlink],
        [
            lambda path: path.with_suffix(".other").write_text("new"),
            lambda path: path.with_suffix(".other").read_text(),
        ],
    ):
        assert watched(*acts) == frozenset(), acts


@pytest.mark.parametrize("name", ["train.log", "training.csv", "metrics.jsonl"])
def test_a_log_is_no_checkpoint(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("epoch,accuracy\n1,0.5\n")
    watch = CheckpointReads(tmp_path)
    (tmp_path / name).read_text()
    assert watch.found() == frozenset()


def test_a_watch_knows_nothing_where_a_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "ck").mkdir()
    (tmp_path / "outside").write_text("x")
    (tmp_path / "ck" / "last").symlink_to(tmp_path / "outside")
    assert CheckpointReads(tmp_path / "ck").found() is None


def test_the_notes_of_a_trial_are_json(opened: Opened, tmp_path: Path) -> None:
    from trainers.script.noted import Noted
    from trainers.script.restarts import Past

    past = Past(values={1: {"a": 0.5}}, files={"state": 1.1}, flat=True, evaluates_first=False, first_step=0.0)
    noted = Noted(last={"a": 0.5}, hyperparameters={"eta": 0.1}, past=past)
    (tmp_path / "notes.json").write_bytes(noted.to_bytes())
    assert Noted.read(tmp_path) == noted
    assert json.loads(noted.to_bytes())["past"]["first_step"] == 0.0
