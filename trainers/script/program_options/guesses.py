"""Guesses from a program's source: its launcher, its length, and its folders of outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainers.script.program_options.option import ProgramOption
from trainers.script.program_options.source import Source

_LENGTHS = (
    *("epochs", "num_epochs", "n_epochs", "num_train_epochs", "max_epochs", "nepochs", "train_epochs", "epoch"),
    *("max_steps", "num_steps", "total_steps", "train_steps", "num_train_steps", "max_train_steps", "steps"),
    *("max_iters", "num_iters", "n_iters", "iterations", "iters", "n_iter", "num_iterations", "max_iter"),
    *("num_boost_round", "num_rounds", "n_rounds", "rounds", "num_round", "n_estimators", "total_timesteps"),
)
_FOLDER = re.compile(r"(?:dir|directory|path|folder|root)$|^(?:save|output|checkpoint|logdir|out)$")


def launcher_of(source: Source) -> str:
    """The launcher that a program is most likely started by."""
    text = source.text
    if source.imports("mpi4py") or source.imports("horovod"):
        return "mpirun"
    if source.imports("accelerate"):
        return "accelerate"
    if re.search(r"MultiWorkerMirroredStrategy|ParameterServerStrategy|TF_CONFIG", text):
        return "tensorflow"
    if re.search(r"init_process_group|DistributedDataParallel|LOCAL_RANK", text):
        return "torchrun"
    return "python"


def length_of(options: Sequence[ProgramOption]) -> ProgramOption | None:
    """The option that most likely says how long the program trains."""
    numbers = [each for each in options if each.kind == "number" or each.default is None]
    by_name = {_plain(each.name): each for each in reversed(numbers)}
    by_last = {_plain(each.name.rpartition(".")[2]): each for each in reversed(numbers)}
    return next((found[name] for found in (by_name, by_last) for name in _LENGTHS if name in found), None)


def folder_of(option: ProgramOption) -> str:
    """The placeholder of an option that names a folder of outputs; empty of others."""
    name = _plain(option.name.rpartition(".")[2])
    if option.kind not in ("text", "choices") or option.choices or not _FOLDER.search(name):
        return ""
    if re.search(r"data|train_|val_|test_|input|cache|config|pretrained|resume|load|tokenizer|name_or_path", name):
        return ""
    if re.search(r"checkpoint|ckpt|save", name):
        return "{checkpoints}"
    if re.search(r"model|output|out|export", name):
        return "{model}"
    return "{output}" if re.search(r"log|result|work|run|root_dir|tensorboard", name) else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
