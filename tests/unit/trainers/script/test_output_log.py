"""Logs of trials: where they are, and what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainers.script.output_log import TURN, OutputLog, job_of, logs_folder, trial_log, turn_text


@pytest.mark.parametrize(
    ("save_to", "job"),
    [
        ("/home/me/.warmband/jobs/churn-1/churn-1-003/000009", "churn-1"),
        ("s3://bucket/models/churn-1/churn-1-003/000009?region=eu", "churn-1"),
        ("/tmp/runs/run-1/000003", "runs"),
        ("000003", "runs"),
    ],
)
def test_a_log_lies_by_the_name_of_its_job(save_to, job):
    assert job_of(save_to) == job


def test_the_turns_of_a_trial_are_behind_each_other(tmp_path):
    log = OutputLog("10.0.0.7", str(tmp_path), 100)
    for turn in (b"one\n\x1d\x1d\x1d\n", b"two\n"):
        log.begin("churn", "churn-001", 0, "units 1 to 3")
        log.write(turn)
        log.close()
    log.begin("churn", "churn-001", 1, "units 1 to 3")
    file = trial_log(str(tmp_path), "churn", "churn-001")
    lines = file.read_text().splitlines()
    assert [line for line in lines if line and "units" not in line] == ["one", "two"]
    assert sum("units 1 to 3" in line for line in lines) == 2
    assert log.place == f"10.0.0.7:{tmp_path}/churn/churn-001.worker-1.log"
    log.close()


def test_each_start_is_found_by_its_line(tmp_path):
    log = OutputLog("here", str(tmp_path), 100)
    for start in (0, 3):
        log.begin("churn", "churn-001", 0, turn_text(start, start + 3, 0, ["python", "train.py", "--name", "a b"]))
        log.write(b"units 1 to 3\n")
        log.close()
    lines = trial_log(str(tmp_path), "churn", "churn-001").read_text().splitlines()
    found = [line for line in lines if TURN.match(line)]
    assert [line.partition("] ")[2] for line in found] == [
        f"units {units} on worker 0: python train.py --name 'a b'" for units in ("1 to 3", "4 to 6")
    ]


def test_a_log_has_an_end_and_says_so(tmp_path):
    log = OutputLog("here", str(tmp_path), 1 << 20)
    log.begin("churn", "churn-001", 0, "all")
    for _ in range(300):
        log.write(b"x" * 9999 + b"\n")
    log.close()
    text = trial_log(str(tmp_path), "churn", "churn-001").read_text()
    assert 1 << 20 < len(text) < 1.1 * (1 << 20)
    assert "1 MiB" in text.splitlines()[-1]


def test_where_the_driver_s_folder_is_not_to_be_written_the_worker_takes_its_own(tmp_path):
    (tmp_path / "file").write_text("")
    log = OutputLog("here", str(tmp_path / "file" / "logs"), 100)
    log.begin("churn", "churn-001", 0, "all")
    assert log.place == f"here:{Path(logs_folder(), 'churn', 'churn-001.log')}"
    log.close()


def test_without_any_folder_a_program_goes_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "file"))
    log = OutputLog("here", "", 100)
    log.begin("churn", "churn-001", 0, "all")
    log.write(b"one\n")
    log.close()
    assert log.place == ""
