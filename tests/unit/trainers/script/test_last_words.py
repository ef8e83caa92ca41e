"""Errors of programs: what the launcher adds does not hide what the program said."""

from __future__ import annotations

from trainers.script.parts import last_words, reason

OWN = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: no third epoch"]
TORCHRUN = [
    "E1126 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0 of binary: python",
    "Traceback (most recent call last):",
    *(f'  File "torch/distributed/run.py", line {number}' for number in range(40)),
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "============================================================",
]


def test_a_program_s_own_error_is_what_is_said() -> None:
    assert last_words([*OWN, *TORCHRUN]) == OWN
    assert reason(last_words([*OWN, *TORCHRUN])) == "ValueError: no third epoch"


def test_a_launcher_s_error_is_said_where_the_program_said_nothing() -> None:
    assert last_words(TORCHRUN) == TORCHRUN[-20:]
    assert last_words([]) == []
    assert reason([]) == ""


def test_the_last_lines_are_kept() -> None:
    assert last_words(["", *map(str, range(100)), " "]) == [str(number) for number in range(80, 100)]
