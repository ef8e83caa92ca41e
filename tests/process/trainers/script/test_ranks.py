"""Programs of several processes on one worker: the first rank's output counts, and others that print are told of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.refusals import mentions, refuses
from tests.support.script_programs import assignment, values
from trainers import TrialError
from trainers.script.output_log import logs_folder, trial_log
from trainers.script.program import ScriptProgram

PRINTS = """
import os, sys, time
names = ("OMPI_COMM_WORLD_RANK", "RANK")
rank = int(next(os.environ[name] for name in names if name in os.environ))
if rank == 0:
    time.sleep(0.3)  # The others are ahead.
for epoch in range(1, 5):
    print(f"acc={epoch / 10 + rank}", flush=True)
    time.sleep(0.05)
"""
MPI = "sh -c 'for rank in 1 2 0; do OMPI_COMM_WORLD_RANK=$rank {program} & done; wait'"
"""As mpirun starts three processes."""
EXPECTED = [(step, step / 10) for step in range(1, 5)]


@pytest.mark.parametrize(
    "options",
    [
        {"launcher": "torchrun", "processes_per_worker": 2},
        {"launcher": f"{sys.executable} -m torch.distributed.run --nproc-per-node 2 {{script}}"},
        {"launcher": MPI},
    ],
    ids=["torchrun", "command line", "mpi"],
)
def test_the_first_rank_alone_is_counted_and_the_user_told_of_others(
    opened: Callable[..., ScriptProgram], tmp_path: Path, options: dict[str, object]
) -> None:
    made = opened(PRINTS, **options).train(assignment(tmp_path, 4, epochs=4), print)
    assert values(made) == EXPECTED
    mentions(made.details["warnings"]["other_ranks"], "worker 0", "'validation:accuracy'", "rank 0")
    log = trial_log(logs_folder(), "job", "trial").read_text()
    assert "acc=0.4" in log
    assert "acc=1.4" in log


def test_a_program_that_stays_loaded_is_counted_by_its_first_rank(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(
        "import os, warmband\n"
        "def main(args):\n"
        "    for epoch in range(1, args.epochs + 1):\n"
        "        print(f\"acc={epoch / 10 + int(os.environ['OMPI_COMM_WORLD_RANK'])}\")\n",
        launcher="sh -c 'for rank in 1 0; do OMPI_COMM_WORLD_RANK=$rank {program} & done; wait'",
        processes_per_worker=2,
        keep_loaded=True,
    )
    for _ in range(2):
        assert values(program.train(assignment(tmp_path, 4, epochs=4), print)) == EXPECTED
    text = trial_log(logs_folder(), "job", "trial").read_text()
    assert text.count("acc=0.4") == text.count("acc=1.4") == 2


def test_reports_by_the_module_are_those_of_the_first_rank(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    source = "import os, warmband\nrank = int(os.environ['OMPI_COMM_WORLD_RANK'])\n"
    source += "for epoch in range(1, 5): warmband.report({'validation:accuracy': epoch / 10 + rank})\n"
    program = opened(source, launcher=MPI, metric_definitions=None)
    assert values(program.train(assignment(tmp_path, 4, epochs=4), print)) == EXPECTED


def test_a_program_that_is_no_python_is_counted_by_its_first_rank(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    source = tmp_path / "shell"
    source.mkdir()
    (source / "train.sh").write_text('#!/bin/sh\nsleep "0.$((3 - RANK))"\necho "acc=$RANK.5"\n')
    (source / "train.sh").chmod(0o755)
    program = opened(
        entry_point="train.sh",
        source_dir=source,
        launcher="sh -c 'for RANK in 2 1 0; do RANK=$RANK {script} & done; wait'",
    )
    assert values(program.train(assignment(tmp_path, 1), print)) == [(1, 0.5)]


def test_an_error_names_the_rank_that_prints_what_the_first_does_not(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(PRINTS.replace("print(f", "rank and print(f"), launcher=MPI)
    with refuses(TrialError, field="'validation:accuracy'", value="rank 0", remedy="print"):
        program.train(assignment(tmp_path, 4), print)


def test_the_end_of_a_rank_s_output_is_read(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    """A launcher may end before what its processes wrote last was read."""
    source = "import os\nif os.environ['OMPI_COMM_WORLD_RANK'] == '2': raise ValueError('no such shard')\n"
    program = opened(source + "print('acc=0.5')\n", launcher=MPI.replace("wait", "wait; sleep 0.2; exit 3"))
    with pytest.raises(TrialError) as raised:
        program.train(assignment(tmp_path, 4), print)
    mentions(str(raised.value), "3", "ValueError: no such shard")


def test_processes_that_print_into_one_stream_are_told_of(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    """Nobody can tell them apart; as in PyTorch's Hogwild example."""
    program = opened(
        "import multiprocessing, time\n"
        "def train(number, barrier):\n"
        "    for epoch in range(1, 5):\n"
        "        barrier.wait()\n"
        "        print(f'{number}\\tepoch {epoch} acc={epoch / 10}', flush=True)\n"
        "if __name__ == '__main__':\n"
        "    barrier = multiprocessing.Barrier(2)\n"
        "    each = [multiprocessing.Process(target=train, args=(number, barrier)) for number in (1, 2)]\n"
        "    for process in each: process.start()\n"
        "    for process in each: process.join()\n"
    )
    made = program.train(assignment(tmp_path, 8, epochs=8), print)
    mentions(made.details["warnings"]["twins"], "'step'", "epoch")
