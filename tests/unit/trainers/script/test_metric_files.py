"""Metrics of files that a program writes: what is read as they grow, are written anew, and were there before."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import mentions, refuses, refuses_each
from trainers import ConfigurationError, ScriptTrainer
from trainers.script import metric_files
from trainers.script.environment import Folders
from trainers.script.event_files import EventStream, Scalar
from trainers.script.folders import folders_of, make
from trainers.script.metric_files import MetricFiles

LIGHTNING = (
    "epoch,step,train_loss,val_loss\n0,0,0.9,\n0,9,,0.5\n",
    "epoch,step,train_loss,val_loss,val_acc\n0,0,0.9,,\n0,9,,0.5,\n1,19,,0.25,0.75\n",
)
"""What its CSVLogger writes, and writes anew once there is another column."""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setattr(metric_files, "LOOK_SECONDS", 0.0)
    made = folders_of(tmp_path, 0)
    make(made)
    return made


def write(path: Path, text: str | bytes) -> None:
    """Writes a file anew, at a time of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    if path.stat().st_mtime_ns == before:
        os.utime(path, ns=(before + 1, before + 1))


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def said(files: MetricFiles, name: str, **options: bool) -> list[float]:
    return [reading.metrics[name] for reading in files.new(**options) if name in reading.metrics]


def message(*fields: tuple[int, Any]) -> bytes:
    """Of protocol buffers; whole numbers, floats, bytes and texts."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            data += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(raw)) + raw
    return data


def varint(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data, number = data + bytes([number & 0x7F | 0x80]), number >> 7
    return data + bytes([number])


def record(event: bytes) -> bytes:
    return struct.pack("<Q", len(event)) + b"crc!" + event + b"crc!"


def scalar(tag: str, value: float, step: int) -> bytes:
    return record(message((2, step), (5, message((1, message((1, tag), (2, value)))))))


def test_rows_come_as_their_file_grows_and_not_before_they_are_whole(folders: Folders) -> None:
    files = MetricFiles(["logs/*.csv"], folders)
    assert files.missing()
    path = Path(folders.code, "logs", "metrics.csv")
    write(path, "epoch,acc\n0,0.5\n1,0.")
    assert said(files, "acc") == [0.5]
    append(path, "75\n2,NA\n")
    assert said(files, "acc") == [0.75]
    append(path, "3,0.875")
    assert said(files, "acc") == []
    assert said(files, "acc", over=True) == [0.875]
    assert not files.missing()


def test_a_table_that_is_written_anew_with_another_column_has_its_new_rows_alone(folders: Folders) -> None:
    files = MetricFiles(["**/metrics.csv"], folders)
    path = Path(folders.code, "lightning_logs", "version_0", "metrics.csv")
    write(path, LIGHTNING[0])
    assert said(files, "val_loss") == [0.5]
    write(path, LIGHTNING[1])
    assert said(files, "val_loss") == [0.25]


@pytest.mark.parametrize("caught", [False, True])
def test_a_table_that_is_written_anew_each_time_has_its_new_rows_alone(folders: Folders, caught: bool) -> None:
    files = MetricFiles(["h.csv"], folders)
    path = Path(folders.code, "h.csv")
    write(path, "acc\n0.5\n0.75\n")
    assert said(files, "acc") == [0.5, 0.75]
    if caught:  # It is cut short and half written as it is looked at.
        write(path, "acc\n0.5\n")
        assert said(files, "acc") == []
    write(path, "acc\n0.5\n0.75\n0.875\n")
    assert said(files, "acc") == [0.875]


def test_a_file_of_another_run_is_new_from_its_first_row_that_differs(folders: Folders) -> None:
    files = MetricFiles(["h.jsonl"], folders)
    path = Path(folders.code, "h.jsonl")
    write(path, '{"acc": 0.5}\nnot JSON\n{"acc": 0.75}\n')
    assert said(files, "acc") == [0.5, 0.75]
    write(path, '{"acc": 0.25}\n')
    assert said(files, "acc") == [0.25]


def test_nested_and_missing_values_of_json_lines(folders: Folders) -> None:
    files = MetricFiles(["log.txt"], folders)
    write(Path(folders.code, "log.txt"), '{"val": {"acc": "0.5", "n": null}, "ok": true, "note": "x"}\n')
    (reading,) = files.new()
    assert reading.metrics == {"val/acc": 0.5}
    assert reading.refused == {"note": "x"}


def test_documents_of_several_checkpoints_go_on_from_each_other(folders: Folders) -> None:
    files = MetricFiles(["{checkpoints}/checkpoint-*/trainer_state.json"], folders)
    history = [{"epoch": 1.0, "eval_loss": 0.5, "step": 10}, {"epoch": 1.5, "loss": 0.4, "step": 15}]
    write(Path(folders.checkpoint, "checkpoint-10", "trainer_state.json"), json.dumps({"log_history": history[:1]}))
    assert said(files, "eval_loss") == [0.5]
    later = [*history, {"epoch": 2.0, "eval_loss": 0.25, "step": 20}]
    path = Path(folders.checkpoint, "checkpoint-20", "trainer_state.json")
    write(path, json.dumps({"log_history": later}, indent=1)[:-9])
    assert said(files, "eval_loss") == []
    write(path, json.dumps({"log_history": later}, indent=1))
    assert said(files, "eval_loss") == [0.25]
    # The next start finds both, and what is added to them.
    files = MetricFiles(["{checkpoints}/checkpoint-*/trainer_state.json"], folders)
    write(
        Path(folders.checkpoint, "checkpoint-30", "trainer_state.json"),
        json.dumps({"log_history": [*later, {"eval_loss": 0.125, "step": 30}]}),
    )
    assert said(files, "eval_loss") == [0.125]


@pytest.mark.parametrize(
    ("document", "values"),
    [
        ({"acc": 0.5, "epoch": 1}, [0.5]),
        ([{"acc": 0.5}, {"acc": 0.75}], [0.5, 0.75]),
        ({"acc": [0.5, 0.75], "loss": [1, 2]}, [0.5, 0.75]),
        ({"best": None, "history": [{"acc": 0.5}]}, [0.5]),
    ],
)
def test_documents_have_entries_columns_or_one_value(folders: Folders, document: Any, values: list[float]) -> None:
    files = MetricFiles(["m.json"], folders)
    path = Path(folders.code, "m.json")
    write(path, json.dumps(document))
    assert said(files, "acc") == values
    write(path, json.dumps(document) + "\n")
    assert said(files, "acc") == []


def test_json_lines_in_a_file_that_is_called_json(folders: Folders) -> None:
    files = MetricFiles(["log.json"], folders)
    path = Path(folders.code, "log.json")
    write(path, '{"acc": 0.5}\n')
    assert said(files, "acc") == [0.5]
    append(path, '{"acc": 0.75}\n{"acc": 0.8')
    assert said(files, "acc") == [0.75]


def test_scalars_of_event_files_whatever_cuts_them(folders: Folders) -> None:
    tensor = message((1, 1), (2, b""), (4, struct.pack("<f", 0.75)))
    data = (
        record(message((3, "brain.Event:2")))
        + scalar("val/acc", 0.5, 0)
        + record(message((2, 1), (5, message((1, message((1, "val/acc"), (8, tensor)))))))
        + record(message((2, 1), (5, message((1, message((1, "image"), (4, b"png")))))))
        + scalar("val/acc", 0.25, 300)
    )
    whole = EventStream().take(data)
    assert whole == [Scalar("val/acc", 0, 0.5), Scalar("val/acc", 1, 0.75), Scalar("val/acc", 300, 0.25)]
    for at in range(len(data)):
        stream = EventStream()
        assert stream.take(data[:at]) + stream.take(data[at:]) == whole
    files = MetricFiles(["runs"], folders, objective="val/acc", key="step")
    path = Path(folders.code, "runs", "a", "events.out.tfevents.1")
    write(path, data[:-5])
    assert said(files, "val/acc") == [0.5, 0.75]
    append(path, data[-5:])
    (last,) = files.new()
    assert (last.metrics, last.step) == ({"val/acc": 0.25}, 300)


def test_a_broken_event_file_and_one_that_is_none(folders: Folders) -> None:
    for number, data in enumerate((b"\xff" * 40, record(b"\xff\xff\xff"))):
        files = MetricFiles(["events*"], folders)  # The one of before is not its own.
        path = Path(folders.code, f"events.tfevents.{number}")
        write(path, data)
        with refuses(ConfigurationError, field=("metric_files", str(path))):
            list(files.new())


def test_what_was_there_before_is_no_metric_of_the_program(folders: Folders) -> None:
    left, kept = Path(folders.code, "m.csv"), Path(folders.checkpoint, "m.csv")
    write(left, "acc\n0.5\n")
    write(kept, "acc2\n0.5\n")
    files = MetricFiles(["m.csv", "{checkpoints}/m.csv"], folders)
    assert list(files.new()) == []
    append(kept, "0.75\n")
    assert said(files, "acc2") == [0.75]
    write(kept, "acc2\n0.5\n0.75\n0.875\n")  # A program that goes on writes its rows of before again.
    assert said(files, "acc2") == [0.875]
    write(left, "acc\n0.5\n")  # One that began writes its own, which may be the same.
    assert said(files, "acc") == [0.5]


def test_the_objective_in_two_places_is_refused(folders: Folders) -> None:
    files = MetricFiles(["logs"], folders, objective="acc")
    write(Path(folders.code, "logs", "train", "a.tfevents"), scalar("acc", 0.5, 0))
    write(Path(folders.code, "logs", "val", "a.tfevents"), scalar("acc", 0.25, 0))
    with refuses(ConfigurationError, field=("metric_files", "acc"), remedy="val/acc"):
        list(files.new())
    files = MetricFiles(["logs"], folders, objective="val/acc")
    append(Path(folders.code, "logs", "train", "a.tfevents"), scalar("acc", 0.75, 1))
    append(Path(folders.code, "logs", "val", "a.tfevents"), scalar("acc", 0.5, 1))
    assert said(files, "val/acc") == [0.5]


def test_two_processes_that_write_the_same_count_once_and_are_refused_where_they_differ(folders: Folders) -> None:
    files = MetricFiles(["runs/*"], folders, objective="acc")
    for name in "ab":
        write(Path(folders.code, "runs", f"{name}.tfevents"), scalar("acc", 0.5, 0))
    assert said(files, "acc") == [0.5]
    append(Path(folders.code, "runs", "a.tfevents"), scalar("acc", 0.5, 1))
    append(Path(folders.code, "runs", "b.tfevents"), scalar("acc", 0.75, 1))
    with refuses(ConfigurationError, field=("acc", "a.tfevents", "b.tfevents"), value=0.75):
        list(files.new())


def test_the_step_is_what_its_column_says(folders: Folders) -> None:
    files = MetricFiles(["m.csv"], folders, objective="acc", key="epoch")
    write(Path(folders.code, "m.csv"), "epoch,step,acc\n0,9,0.5\n1,19,0.75\n")
    assert [(each.step, each.metrics) for each in files.new()] == [(0, {"acc": 0.5}), (1, {"acc": 0.75})]


def test_a_glob_that_matches_nothing_is_said(folders: Folders) -> None:
    mentions(MetricFiles(["lgos/*.csv"], folders).missing(), "metric_files", "lgos/*.csv", "CSV")


def test_wrong_globs_are_refused_and_a_record_keeps_the_others() -> None:
    def make(value: Any) -> Callable[[], object]:
        return lambda: ScriptTrainer("train.py", metric_files=value)

    refuses_each(
        [
            (make("a.csv"), ("metric_files", "a.csv", "list")),
            (make([""]), ("metric_files[0]", "''", "glob")),
            (make(["a", 3]), ("metric_files[1]", 3, "glob")),
            (make(["{ckpt}/a.csv"]), ("metric_files[0]", "{ckpt}", "{checkpoints}")),
            (make(["a/{model}/*"]), ("metric_files[0]", "a/{model}/*", "{model}")),
        ],
        ConfigurationError,
    )
    trainer = ScriptTrainer("train.py", metric_files=("{output}/m.csv",))
    assert trainer.options["metric_files"] == ["{output}/m.csv"]
    assert trainer.metrics(()) is None
