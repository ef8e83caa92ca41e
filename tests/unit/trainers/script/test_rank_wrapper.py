"""The wrapper of a program's processes: which of them count, and what it becomes."""

from __future__ import annotations

import os
import sys

import pytest

from trainers.script.launchers import Place, mixes_ranks, wrapped
from trainers.script.module import warmband
from trainers.script.module.warmband_rank import GIVEN, NAME, RANKS, counts, given, program_of

MEETING = {"RANK": "0", "WORLD_SIZE": "1"}


@pytest.mark.parametrize(
    ("before", "own", "first"),
    [
        ({}, {}, True),
        ({}, {"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({}, {"RANK": "1"}, False),
        (MEETING, {"RANK": "1", "WORLD_SIZE": "2"}, False),
        (MEETING, {"OMPI_COMM_WORLD_RANK": "0"}, True),
        (MEETING, {"OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}, False),
        (MEETING, {"PMI_RANK": "3"}, False),
        (MEETING, {"HOROVOD_RANK": "1"}, False),
        ({"SLURM_PROCID": "3"}, {"RANK": "0"}, True),  # Ray itself was started by Slurm's srun.
        ({"SLURM_PROCID": "3"}, {"SLURM_PROCID": "1"}, False),
    ],
)
def test_the_first_rank_counts_by_what_the_launcher_itself_says(before, own, first):
    environment = {**before, GIVEN: given(before), **own}
    assert counts(environment) is first


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["python", "warmband_rank.py", "train.py", "--lr", "-1"], ["python", "train.py", "--lr", "-1"]),
        (["python", "-u", "sub/warmband_rank.py", "sub/train.py"], ["python", "-u", "sub/train.py"]),
        (["python", "../warmband_rank.py", "train.py"], ["python", "../train.py"]),
        (
            ["python", "/at/warmband_rank.py", "--local_rank=1", "t.py", "a"],
            ["python", "/at/t.py", "--local_rank=1", "a"],
        ),
        (["python", "-m", "cProfile", "warmband_rank.py", "t.py"], ["python", "-m", "cProfile", "t.py"]),
        (["python", "warmband_rank.py", "run.sh", "x"], ["./run.sh", "x"]),
        (["python", "bin/warmband_rank.py", "bin/run", "x"], ["bin/run", "x"]),
    ],
)
def test_it_becomes_the_program_as_its_launcher_starts_it(words, command):
    assert program_of(words) == command


def test_a_program_has_the_wrapper_beside_it():
    assert wrapped(("sub/train.py", "--lr", "1")) == (f"sub/{NAME}", "sub/train.py", "--lr", "1")
    assert wrapped(("train",)) == (sys.executable, NAME, "train")
    assert os.path.basename(program_of(["python", *wrapped(("/a/host.py",))])[1]) == "host.py"


@pytest.mark.parametrize(
    ("launcher", "workers", "processes", "rank", "mixes"),
    [
        ("python", 2, 1, 0, False),
        ("tensorflow", 2, 1, 0, False),
        ("torchrun", 2, 1, 0, False),
        ("torchrun --max-restarts 1", 1, 2, 0, True),
        ("torchrun", 2, 2, 1, False),
        ("accelerate", 1, 4, 0, True),
        ("mpirun", 2, 1, 0, True),
        ("mpirun", 1, 1, 0, False),
        ("torchrun --nproc-per-node 2 {script}", 1, 1, 0, True),
        ("torchrun --nproc-per-node 2 {script}", 2, 1, 1, False),
    ],
)
def test_the_first_worker_s_output_mixes_ranks_where_its_launcher_starts_several(
    launcher, workers, processes, rank, mixes
):
    place = Place(
        rank=rank,
        world_size=workers,
        hosts=("10.0.0.7",) * workers,
        ports=((5000,),) * workers,
        cpus=2,
        gpus=0,
        processes=processes,
    )
    assert mixes_ranks(launcher, place) is mixes


def test_the_module_knows_the_same_variables():
    assert (warmband._RANKS, warmband._GIVEN) == (RANKS, GIVEN)
