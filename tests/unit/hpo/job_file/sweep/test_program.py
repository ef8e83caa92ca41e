"""Commands of sweeps: launchers, arguments, and what a job file has no place for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
from tests.support.refusals import refuses_each
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
        ([*PYTHON, "${args}", "--of={epoch}"], {"static": {"of": "{{epoch}}"}}),
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


@pytest.mark.parametrize(
    ("macro", "given"),
    [
        ("args_no_boolean_flags", {"booleans": "--flag"}),
        ("args_no_hyphens", {"style": "name=value"}),
        ("args_append_hydra", {"style": "+name=value"}),
        ("args_override_hydra", {"style": "++name=value"}),
        ("args_json_file", {"style": "file", "file": {"name": "args.json", "option": ""}}),
    ],
)
def test_forms_of_arguments_are_carried_over(job: Job, commented: Callable[..., str], macro: str, given: Any) -> None:
    parameters = {
        "epochs": {"value": 9},
        "lr": {"min": 0.1, "max": 1},
        "fp16": {"value": True},
        "amp": {"values": [True, False]},
    }
    command = [*PYTHON, f"${{{macro}}}"]
    trainer = started(job, command, parameters=parameters)
    assert trainer.arguments.given() == given
    assert (trainer.launcher, trainer.hyperparameters) == ("python", {"epochs": 9, "fp16": True})
    commented(f"${{{macro}}}", "arguments", command=command, parameters=parameters)


def test_other_words_of_hydra_s_commands_stay(job: Job) -> None:
    trainer = started(job, [*PYTHON, "--config-name", "big", "+data=x", "seed=3", "${args_no_hyphens}"])
    assert trainer.launcher == "{program} --config-name big +data=x"
    assert trainer.hyperparameters == {"seed": 3, "epochs": 9}


def test_what_a_job_file_has_no_place_for_is_one_error(in_one_line: Job) -> None:
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"command": "python train.py"}, ("line 1", "command", "'python train.py'", "list")),
        (
            {"command": [*PYTHON, "${args_json}"]},
            ("command", "${args_json}", "JSON", "WARMBAND_HYPERPARAMETERS", "${args}"),
        ),
        ({"command": [*PYTHON, "${args_jsn}"]}, ("command", "${args_jsn}", "W&B", "args_json")),
        ({"command": [*PYTHON, "--d=${envvar:DATA}"]}, ("command", "${envvar:DATA}", "value")),
        ({"command": [*PYTHON, "x${args}"]}, ("command", "'x${args}'", "word")),
        ({"command": [*PYTHON, "fit", "${args}"]}, ("command", "'fit'", "${args}")),
        ({"command": [*PYTHON, "--lr", 1, "${args}"]}, ("command", "--lr", "parameters.lr")),
        ({"command": [*PYTHON, "--a", 1, "--a=2"]}, ("command", "--a", "once")),
        ({"program": None}, ("program", ".py", "command", "train.py")),
        ({"program": 3}, ("program", 3, "path")),
        ({"program": "/x/train.py"}, ("program", "'/x/train.py'", "folder", "hpo tune")),
        ({"program": "shop.train"}, ("program", "'shop.train'", ".py")),
        (
            {"command": ["python", "-m", "${program}", "${args}"], "program": "shop.train"},
            ("command", "-m", "program", "FILE.py"),
        ),
    ]
    refuses_each(((partial(in_one_line, **changes), names) for changes, names in cases), ConfigurationError)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ([*PYTHON], ("command", "${args}", "W&B", "wandb.config")),
        ([*PYTHON, "--cfg", "a", "${args}"], ("command", "cfg", "'a'", "static")),
        ([*PYTHON, "${args}", "--fp16"], ("command", "--fp16", "launcher")),
        (["torchrun", "--nnodes=2", "${program}", "${args}"], ("launcher", "torchrun", "num_workers", 2)),
        (["torchrun", "--standalone", "${program}", "${args}"], ("command", "--standalone", "Warmband")),
        (["deepspeed", "${program}", "${args}"], ("worker", "deepspeed {script}")),
    ],
)
def test_what_became_of_a_command_is_a_comment(
    commented: Callable[..., str], command: list[str], names: tuple[object, ...]
) -> None:
    commented(*names, command=command)
