"""Commands of sweeps: launchers, arguments, and what a job file has no place for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
from trainers.errors import ConfigurationError
from trainers.script.launchers import check_launcher

Job = Callable[..., JobSpec]

PYTHON = ["${env}", "${interpreter}", "${program}"]


def started(job: Job, command: list[Any] | None, **changes: Any) -> Any:
    """The trainer of a sweep with a command."""
    trainer = job(command=command, **changes).trainer
    check_launcher(trainer.launcher, workers=trainer.num_workers, processes=trainer.processes_per_worker)
    return trainer


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (None, {"launcher": "python"}),
        ([*PYTHON, "${args}"], {"launcher": "python"}),
        (["python3", "-u", "${program}", "${args}"], {"launcher": "python"}),
        (["python", "train.py", "${args}"], {"launcher": "python"}),
        (["${env}", "A=1", "B=x=y", "python", "${program}"], {"environment": {"A": "1", "B": "x=y"}}),
        ([*PYTHON, "--cfg", "a.yaml", "--k=0.5", "-b", 3, "${args}"], {"static": {"cfg": "a.yaml", "k": 0.5, "b": 3}}),
        ([*PYTHON, "--zip", "007", "--off", "-3", "${args}"], {"static": {"zip": "007", "off": -3}}),
        ([*PYTHON, "--fp16", "${args}", "last"], {"launcher": "{program} --fp16 last"}),
        ([*PYTHON, "${args}", "--of={epoch}"], {"static": {"of": "{epoch}"}}),
        ([*PYTHON, "${args}", "{epoch} x"], {"launcher": "{program} '{{epoch}} x'"}),
        (["torchrun", "${program}", "${args}"], {"launcher": "torchrun", "num_workers": 1}),
        (
            ["torchrun", "--standalone", "--nproc_per_node=4", "${program}", "${args}"],
            {"launcher": "torchrun", "num_workers": 1, "processes_per_worker": 4},
        ),
        (
            ["python", "-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 4, "${program}", "${args}"],
            {"launcher": "torchrun", "num_workers": 2, "processes_per_worker": 4},
        ),
        (
            ["torchrun", "--nproc_per_node", "gpu", "${program}", "${args}"],
            {"launcher": "torchrun --nproc_per_node gpu {script}", "num_workers": 1},
        ),
        (
            ["torchrun", "--nproc_per_node=2", "${program}", "--fp16", "${args}"],
            {"launcher": "torchrun --nproc_per_node=2 {script} --fp16", "processes_per_worker": 1},
        ),
        (
            ["accelerate", "launch", "--multi_gpu", "--num_machines=2", "--num_processes=8", "${program}", "${args}"],
            {"launcher": "accelerate", "num_workers": 2, "processes_per_worker": 4},
        ),
        (
            ["accelerate", "launch", "--mixed_precision", "bf16", "${program}", "${args}"],
            {"launcher": "accelerate launch --mixed_precision bf16 {script}"},
        ),
        (["mpirun", "-np", "4", "python", "${program}", "${args}"], {"launcher": "mpirun -np 4 {program}"}),
        (["deepspeed", "${program}", "${args}"], {"launcher": "deepspeed {script}"}),
    ],
)
def test_a_command_is_a_launcher_and_its_arguments(job: Job, command: Any, expected: dict[str, Any]) -> None:
    trainer = started(job, command)
    assert trainer.entry_point == "train.py"
    assert trainer.hyperparameters == {**expected.pop("static", {}), "epochs": 9}
    assert {name: getattr(trainer, name) for name in expected} == expected


def test_the_program_may_stand_in_the_command_alone(job: Job) -> None:
    assert started(job, ["python", "src/fit.py", "${args}"], program=None).entry_point == "src/fit.py"


def test_constants_that_are_flags(job: Job) -> None:
    parameters = {
        "epochs": {"value": 9},
        "lr": {"min": 0.1, "max": 1},
        "fp16": {"value": True},
        "amp": {"value": False},
    }
    trainer = started(job, [*PYTHON, "${args_no_boolean_flags}"], parameters=parameters)
    assert (trainer.launcher, trainer.hyperparameters) == ("{program} --fp16", {"epochs": 9})
    trainer = started(job, [*PYTHON, "${args}"], parameters=parameters)
    assert trainer.hyperparameters == {"epochs": 9, "fp16": True, "amp": False}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"command": "python train.py"}, "line 1: command is 'python train.py'; give a list of words"),
        ({"command": [*PYTHON, "${args_no_hyphens}"]}, "${args_no_hyphens}, by which the program gets name=value, and"),
        (
            {"command": [*PYTHON, "${args_json_file}"]},
            "let the program read the JSON file that WARMBAND_HYPERPARAMETERS",
        ),
        ({"command": [*PYTHON, "${args_jsn}"]}, "${args_jsn}, which W&B has no such macro of; did you mean 'args_json"),
        (
            {"command": [*PYTHON, "--d=${envvar:DATA}"]},
            "${envvar:DATA}, which a job file has none of; write the variab",
        ),
        ({"command": [*PYTHON, "x${args}"]}, "command has 'x${args}'; give ${args} as a word of its own"),
        ({"command": [*PYTHON, "fit", "${args}"]}, "has 'fit' between the program and its hyperparameters, where Warm"),
        ({"command": [*PYTHON, "--lr", 1, "${args}"]}, "command has --lr, as parameters.lr has; leave one of them out"),
        ({"command": [*PYTHON, "--a", 1, "--a=2"]}, "command has --a twice; give it once"),
        ({"program": None}, "program is missing, and no file that ends in .py is in command; give program: train.py"),
        ({"program": 3}, "program is 3; give the path of the program"),
        (
            {"program": "/x/train.py"},
            "program is '/x/train.py'; give a path from the folder that hpo tune is started in",
        ),
        ({"program": "shop.train"}, "program is 'shop.train', which Python starts; give a file that ends in .py"),
        (
            {"command": ["python", "-m", "${program}", "${args}"], "program": "shop.train"},
            "command starts a module by -m, and a job file names a file; give program: FILE.py",
        ),
        (
            {
                "command": [*PYTHON, "${args_no_boolean_flags}"],
                "parameters": {"epochs": {"value": 9}, "lr": {"values": [True, False]}},
            },
            "parameters.lr has the values [true, false], which ${args_no_boolean_flags} gives as --lr or nothing",
        ),
    ],
)
def test_what_a_job_file_has_no_place_for_is_one_error(job: Job, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        job(**changes)
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([*PYTHON], "command has no ${args}: W&B gives the program its hyperparameters by wandb.config"),
        ([*PYTHON, "--cfg", "a", "${args}"], "command has cfg 'a': it is a static hyperparameter"),
        ([*PYTHON, "${args}", "--fp16"], "command has --fp16: it stands behind all hyperparameters, in launcher"),
        (["torchrun", "--nnodes=2", "${program}", "${args}"], "the launcher is torchrun: num_workers 2"),
        (["torchrun", "--standalone", "${program}", "${args}"], "command has --standalone, which Warmband gives"),
        (["deepspeed", "${program}", "${args}"], "each worker starts this command line: deepspeed {script}"),
    ],
)
def test_what_became_of_a_command_is_a_comment(converted: Callable[..., str], command: list[str], told: str) -> None:
    assert told in converted(command=command)
