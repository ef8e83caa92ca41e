"""Public training programs, tuned as they stand, and their winners trained again by hand.

    python -m experiments.public_programs NAME [--sources DIR] [--env PYTHON] [--out DIR]

A program is checked out at a pinned commit, below DIR from a Git directory OWNER+NAME/repo or else from GitHub. It gets
small generated data, and `hpo tune` runs its job file from `experiments/public` once by Hyperband and once by Bayesian
search. The printed command of each winner then runs in a shell. Its output has to have the value of the job. If the
values differ, the command runs twice more, and the result has the spread of the three runs.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

import experiments.public
from experiments.public import data
from experiments.shared.benchmark import write
from hpo.cli import errors_in_words
from trainers import WarmbandError

JOBS = Path(experiments.public.__file__).parent
STRATEGIES = {"Hyperband": 3, "Bayesian": 2}
"""Search strategies, and how many thirds of the job file's `max_jobs` each runs."""
BY_HAND_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class Program:
    """A public program.

    Args:
        repository: on GitHub, OWNER/NAME.
        commit: of the checkout.
        paths: files and folders that are checked out.
        generate: writes its data into the folder of the checkout.
        configured: what the job file has to say beside hyperparameters, metric and ranges.
        printers: how many processes print the metric by hand; they print a unit before one prints the next unit.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    generate: Callable[[Path], None]
    configured: str
    printers: int = 1


PROGRAMS = {
    "mnist": Program(
        repository="pytorch/examples",
        commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
        paths=("mnist",),
        generate=lambda folder: data.mnist_files(folder / "data" / "MNIST" / "raw", 400, 200),
        configured="`working_dir`, since it reads `../data`",
    ),
    "imagenet": Program(
        repository="pytorch/examples",
        commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
        paths=("imagenet",),
        generate=lambda folder: data.image_folders(folder / "data", 32, 20),
        configured="its own options of the process group",
        printers=2,
    ),
    "mingpt": Program(
        repository="karpathy/minGPT",
        commit="37baab71b9abea1b76ab957409a1cc2fbfba8a26",
        paths=("mingpt", "projects/adder"),
        generate=lambda folder: None,
        configured="`PYTHONPATH`, the form of arguments, `length` and `step`",
    ),
    "nanogpt": Program(
        repository="karpathy/nanoGPT",
        commit="3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        paths=("train.py", "model.py", "configurator.py", "config/train_shakespeare_char.py"),
        generate=lambda folder: data.shakespeare_tokens(folder / "data" / "shakespeare_char", 2000, 500),
        configured="`RANK` of -1, the form of arguments, `length` and `step`",
    ),
    "lightning": Program(
        repository="Lightning-AI/pytorch-lightning",
        commit="7f0c3436cd3f6ad3753125672024fc415cbcb414",
        paths=("examples/pytorch/basics",),
        generate=lambda folder: data.lightning_mnist(folder / "examples/Datasets/MNIST/complete", 60_000, 100),
        configured="CSV logger and `metric_files`, `length`",
    ),
    "accelerate": Program(
        repository="huggingface/accelerate",
        commit="16cb6eb80dd9aa8b4df1a63ef57863e455d53b83",
        paths=("examples/complete_nlp_example.py",),
        generate=lambda folder: data.glue_of_words(folder, 64, 32),
        configured="`length`, `processes_per_worker`, an expression for the printed dict",
    ),
    "hydra": Program(
        repository="ashleve/lightning-hydra-template",
        commit="bddbc24b82ab6ccfa6243e815a49dc5bfe8d4144",
        paths=(".project-root", "configs", "src"),
        generate=lambda folder: data.mnist_files(folder / "data" / "MNIST" / "raw", 400, 100),
        configured="CSV logger and `metric_files`, `length`",
    ),
    "kubeflow": Program(
        repository="kubeflow/trainer",
        commit="ee1162919408cbca4a899f2916cfcd0ecd562881",
        paths=("examples/pytorch/mnist/mnist.py",),
        generate=lambda folder: data.mnist_files(folder / "examples/pytorch/data/FashionMNIST/raw", 400, 200),
        configured="`working_dir`, since it reads `../data`",
        printers=2,
    ),
    "transformers": Program(
        repository="huggingface/transformers",
        commit="3a275d3581c0ecf962f7412aa764c2047331fd6b",
        paths=("examples/pytorch/language-modeling/run_clm.py",),
        generate=lambda folder: data.language_of_words(folder, 200, 40),
        configured="nothing",
    ),
    "parallel": Program(
        repository="NickGeneva/blog-code",
        commit="3a8e308d55931b053b8a47268c52d62e0fa16bd8",
        paths=("parallel-nn",),
        generate=lambda folder: data.packed_mnist_files(folder / "parallel-nn", 400, 100),
        configured="`working_dir`, since it reads `.`",
        printers=2,
    ),
    "lightgbm": Program(
        repository="microsoft/lightgbm-benchmark",
        commit="3d124a7591e580b5e39e9078cf83b711205f27dc",
        paths=("src/common", "src/scripts/training/lightgbm_python"),
        generate=lambda folder: data.tables(folder / "data", 400, 200),
        configured="`length`",
    ),
    "mlflow": Program(
        repository="mlflow/mlflow",
        commit="9a1feb352791320a2d2f72a016186cf10f68e9dc",
        paths=("examples/hyperparam/train.py",),
        generate=lambda folder: data.wines(folder / "wine.csv", 200),
        configured="Keras 2",
    ),
    "flax": Program(
        repository="google/flax",
        commit="18f8f311c275d57f46d95e41b15aa97b454754c0",
        paths=("examples/mnist",),
        generate=lambda folder: data.tfds_mnist(folder / "data", 400, 200),
        configured="`TFDS_DATA_DIR`, `length`",
    ),
    "segmentation": Program(
        repository="Azure/azureml-examples",
        commit="085cd6ea399038c1e07843acff811f34261c0887",
        paths=("cli/jobs/pipelines/tensorflow-image-segmentation/src",),
        generate=lambda folder: data.images_and_masks(folder / "data", 64, 32),
        configured="Keras 2, MLflow's runs in files",
        printers=2,
    ),
}


def git(*words: str) -> bytes:
    """Return the output of a Git command.

    Raises:
        WarmbandError: the command failed.
    """
    done = subprocess.run(["git", *words], check=False, capture_output=True)
    if done.returncode:
        raise WarmbandError(f"git {' '.join(words)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def check_out(program: Program, sources: Path | None, folder: Path) -> None:
    """Write the files of a program into a folder.

    Raises:
        WarmbandError: the commit cannot be had.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if sources is None:
            directory = Path(scratch)
            address = f"https://github.com/{program.repository}"
            git("init", "--quiet", "--bare", scratch)
            try:
                git("--git-dir", scratch, "fetch", "--quiet", "--depth", "1", address, program.commit)
            except WarmbandError as error:
                raise WarmbandError(f"{error}; give --sources a folder with OWNER+NAME/repo instead") from None
        else:
            directory = sources / program.repository.replace("/", "+") / "repo"
            if not directory.is_dir():
                raise WarmbandError(
                    f"--sources: {directory} is not there; clone {program.repository} to it with --bare"
                )
        names = git("--git-dir", str(directory), "ls-tree", "-r", "-z", "--name-only", program.commit, *program.paths)
        for name in filter(None, names.decode().split("\0")):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(git("--git-dir", str(directory), "show", f"{program.commit}:{name}"))


def job_of(name: str) -> dict[str, Any]:
    """Return the job file of a program."""
    job: dict[str, Any] = YAML(typ="safe").load(JOBS / f"{name}.yaml")
    return job


def trials(name: str, strategy: str) -> int:
    """Return how many trials of a program a strategy runs."""
    most: int = job_of(name)["tuning"]["max_jobs"]
    return most * STRATEGIES[strategy] // 3


def tuned(name: str, strategy: str, python: str, folder: Path) -> dict[str, Any]:
    """Tune a program, and return the best trial as `hpo tune --json` prints it.

    Raises:
        WarmbandError: the job failed.
    """
    changed = {"strategy": strategy, "max_jobs": trials(name, strategy)}
    words = [python, "-m", "hpo", "tune", str(JOBS / f"{name}.yaml"), "--allow-code", "--json"]
    words += [word for key, value in changed.items() for word in ("--set", f"tuning.{key}={value}")]
    done = subprocess.run(words, check=False, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise WarmbandError(f"{shlex.join(words)} ended with exit status {done.returncode}")
    summary = json.loads(done.stdout)["Summary"]
    if summary["best"] is None:
        raise WarmbandError(f"{name}: no trial under {strategy} has a value: {summary['errors']}")
    best: dict[str, Any] = summary["best"]
    return best


def by_hand(command: str, trainer: Mapping[str, Any], objective: str, folder: Path) -> list[float]:
    """Run a command in a shell, and return the values of the objective that it prints or writes to CSV files.

    Raises:
        WarmbandError: the command failed.
    """
    before = written_files(trainer, folder)
    done = subprocess.run(
        ["bash", "-c", command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BY_HAND_SECONDS,
    )
    if done.returncode:
        raise WarmbandError(f"{command} ended with exit status {done.returncode}:\n{done.stdout[-2000:]}")
    for definition in trainer.get("metric_definitions", ()):
        if definition["Name"] == objective:
            return printed_values(definition["Regex"], done.stdout)
    return [value for path in written_files(trainer, folder) - before for value in csv_values(path, objective)]


def written_files(trainer: Mapping[str, Any], folder: Path) -> set[Path]:
    """Return the metric files that are there now."""
    return {path for glob in trainer.get("metric_files", ()) for path in folder.glob(glob)}


def printed_values(regex: str, output: str) -> list[float]:
    """Return the values that an expression finds."""
    matches = re.finditer(regex, output)
    return [float(match["value"] if "value" in match.groupdict() else match[1]) for match in matches]


def value_of_unit(values: Sequence[float], unit: int, printers: int, expected: float) -> float:
    """Return the value of a unit; of several processes, the value that is expected if one of them has it.

    Args:
        values: all that the processes printed.
        unit: from 1.
        printers: how many processes print.
        expected: the value of the job, which is that of rank 0.

    Raises:
        WarmbandError: the processes printed fewer units.
    """
    printed = values[(unit - 1) * printers : unit * printers]
    if len(printed) < printers:
        raise WarmbandError(f"{printers} processes printed {len(values)} values, not those of {unit} units")
    return expected if expected in printed else printed[0]


def csv_values(path: Path, column: str) -> list[float]:
    """Return the values of a column, without empty cells."""
    with path.open(newline="") as file:
        return [float(row[column]) for row in csv.DictReader(file) if row.get(column)]


def measure(name: str, sources: Path | None, python: str, folder: Path) -> dict[str, Any]:
    """Tune a program by each strategy, and train the winners by hand."""
    program, job = PROGRAMS[name], job_of(name)
    check_out(program, sources, folder)
    program.generate(folder)
    trainer, objective = job["trainer"], job["tuning"]["objective_metric_name"]
    found = {}
    for strategy in STRATEGIES:
        best = tuned(name, strategy, python, folder)
        unit, values = best["resource"], list[float]()
        while not values or (len(values) < 3 and best["value"] not in values):
            printed = by_hand(best["command"], trainer, objective, folder)
            values.append(value_of_unit(printed, unit, program.printers, best["value"]))
        found[strategy] = {"value": best["value"], "unit": unit, "by_hand": values}
    return {
        "name": name,
        "repository": program.repository,
        "commit": program.commit,
        "entry_point": trainer["entry_point"],
        "launcher": trainer.get("launcher", "python"),
        "processes": max(1, trainer["num_workers"]) * trainer.get("processes_per_worker", 1),
        "lines": len((JOBS / f"{name}.yaml").read_text().splitlines()),
        "configured": program.configured,
        "objective": objective,
        "found": found,
    }


def agreement(found: Mapping[str, Any]) -> str:
    """Return a value of a job beside the values of its command by hand."""
    value, values = found["value"], found["by_hand"]
    if value in values:
        return f"{value:g}, by hand the same"
    return f"{value:g}, by hand {min(values):g} to {max(values):g}"


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the line of a program in the table of docs/guides/frameworks.md."""
    return {"row": " | ".join(row(result["public_program"]))}


def row(measured: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a program: its place, launcher, job file, and values."""
    place = f"{measured['repository']}/blob/{measured['commit']}/{measured['entry_point']}"
    return (
        f"[{measured['repository']}, `{measured['entry_point']}`](https://github.com/{place})",
        f"`{measured['launcher']}`, {measured['processes']}",
        str(measured["lines"]),
        measured["configured"],
        *(agreement(measured["found"][strategy]) for strategy in STRATEGIES),
    )


def main(
    name: Annotated[str, typer.Argument(help=f"The program: {', '.join(PROGRAMS)}.")],
    sources: Annotated[Path | None, typer.Option(help="Folder of Git directories OWNER+NAME/repo.")] = None,
    env: Annotated[str, typer.Option(help="The Python that has the program's packages.")] = sys.executable,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/public_programs"),
) -> None:
    """Tune a public program as it stands, and train the winners by hand."""
    if name not in PROGRAMS:
        raise WarmbandError(f"NAME is {name!r}; give one of {', '.join(PROGRAMS)}")
    with tempfile.TemporaryDirectory(prefix="warmband-public-") as scratch:
        measured = measure(name, sources, env, Path(scratch))
    print(f"written to {write(out, {'public_program': measured})}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
