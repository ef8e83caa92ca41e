"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from ray.scripts.scripts import cli as ray_command
from ray.util import placement_group, remove_placement_group

from hpo import (
    Callback,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    Prices,
    StrategyConfig,
)
from hpo.cli.command import root
from hpo.job_file.trainer_models import CustomSpec
from hpo.strategies import lay_out
from tests.support import yaml_text
from tests.support.boosting import CHANNELS
from tests.support.docker.deployment import resolve
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.snippets import PAGES, REASONS, ROOT, RUN, SHELL, SHOWN, Block, begin, blocks
from trainers import ConfigurationError, ScalingConfig, XGBoostTrainer
from trainers.registry import trainer_from_json

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTORCH = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- (?:port|shown): (\w+) -->\n)?```python\n(.*?)```", PYTORCH, re.DOTALL)

ALL = [block for page in PAGES for block in blocks(page)]
HERE = "docs/pytorch.md"
"""Its blocks are no one session: the tests at the end run them, each with what it belongs to."""

RUN_PAGES = sorted({block.page for block in ALL if block.language in RUN and block.reason is None} - {HERE})

LONG = {
    "docs/coming-from-script-mode.md",
    "docs/jobs.md",
    "docs/report.md",
    "docs/resuming.md",
    "docs/simulating.md",
    "docs/tutorials/first-job.md",
}
"""The pages that take longest, a dozen commands or more."""

JOB = """
data: {channels: {train: {path: train.csv, target: y}, validation: {path: validation.csv, target: y}}}
trainer: {type: xgboost, num_workers: 0, hyperparameters: {objective: "binary:logistic", eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {max_resource: 9}
  max_jobs: 9
  random_seed: 1
  ranges: {eta: {type: continuous, min: 0.01, max: 1}, max_depth: {type: integer, min: 1, max: 6}}
"""


RANGES = {"eta": ContinuousParameter(0.01, 1), "max_depth": IntegerParameter(1, 6)}


@dataclass(frozen=True)
class Ground:
    """What every page's blocks find: a folder with data and job files, and a record with three jobs."""

    folder: Path
    home: Path


class Stops(Callback):
    """Presses Ctrl-C when the third trial has ended."""

    def __init__(self) -> None:
        self.ended = 0

    def on_trial_end(self, trial: Any, end: Any) -> None:
        self.ended += 1
        if self.ended == 3:
            signal.raise_signal(signal.SIGINT)


def small(**options: Any) -> HyperparameterTuner:
    """The tuner that pages call `tuner`, on a few rows, in this process."""
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 9}
    return HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters=static),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        max_jobs=9,
        random_seed=1,
        console=False,
        **options,
    )


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """`churn-1` was stopped by Ctrl-C, `churn-2` and `bank-1` have ended."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    inputs = {name: str(folder / f"{name}.csv") for name in CHANNELS}
    for name, rows in CHANNELS.items():
        rows.to_csv(inputs[name], index=False)
    for name in ("job.yaml", "bank.yaml"):
        (folder / name).write_text(JOB, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMBAND_HOME", str(home))
        patch.delenv("WARMBAND_STORE", raising=False)
        limits = {"max_runtime_in_seconds": 3600, "prices": Prices(per_worker_hour=0.1), "max_cost": 5}
        stopped = small(callbacks=[Stops()], **limits)
        with contextlib.suppress(KeyboardInterrupt):
            stopped.fit(inputs, job_name="churn-1")
        assert stopped.describe()["HyperParameterTuningJobStatus"] == "Stopped"
        for name in ("churn-2", "bank-1"):
            small().fit(inputs, job_name=name)
    for each in (folder, home):
        shutil.copytree(each, each.with_name(f"{each.name}-kept"))
    return Ground(folder, home)


def test_every_block_says_what_it_is() -> None:
    assert [block.where for block in ALL if block.language not in (*RUN, *SHOWN)] == []
    assert [block.where for block in ALL if block.reason and block.language not in RUN] == []


def test_a_block_that_is_not_run_says_why() -> None:
    """Another such block changes these numbers: run it if that is possible."""
    left_out = [block for block in ALL if block.reason is not None]
    listed = "\n".join(f"{block.where}: {block.reason}" for block in left_out)
    assert {block.reason for block in left_out} <= {*REASONS}, listed
    assert Counter(block.reason for block in left_out) == NOT_RUN, listed


PUBLIC = {"hpo", "hpo.record", "hpo.report", "hpo.strategies", "hpo.trackers", "trainers", "trainers.datasets"}

NOT_RUN = {
    "needs a cluster, a server or a cloud account": 36,
    "takes minutes": 30,
    "is a reference, whose commands are parsed": 28,
    "needs a container engine": 2,
    "downloads data": 2,
    "shows an error on purpose": 2,
    "installs packages": 2,
    "follows a block that is not run": 1,
}


@pytest.fixture
def fresh(ground: Ground) -> Ground:
    """As it was when it was made, at the same place: the record names files by their paths."""
    for each in (ground.folder, ground.home):
        shutil.rmtree(each)
        shutil.copytree(each.with_name(f"{each.name}-kept"), each)
    return ground


@pytest.mark.process
@pytest.mark.parametrize("page", sorted({*RUN_PAGES} - LONG))
def test_the_blocks_of_a_page_run(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, fresh, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("page", sorted(LONG))
def test_the_blocks_of_a_long_page_run(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, fresh, monkeypatch)


def run_page(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in their order: Python in one namespace, commands in one shell."""
    monkeypatch.syspath_prepend(ROOT / "trainers" / "script" / "module")  # Where programs have the module `warmband`.
    tuner = small(store=f"sqlite:///{fresh.home}/warmband.db")
    names = {"trainer": tuner.estimator, "ranges": RANGES, "tuner": tuner, "train": loop}
    with begin(fresh.folder, fresh.home, monkeypatch, names) as session:
        for block in blocks(ROOT / page):
            if block.reason is None:
                session.run(block)
        if page == "docs/tutorials/pytorch-function.md":
            learned(session.names["tuner"].describe()["Summary"])
        if page == "docs/tutorials/from-ray-tune.md":
            as_planned(session.names["tuner"].describe()["Summary"], (ROOT / page).read_text(encoding="utf-8"))


def loop(context: Any) -> None:
    """The training function that pages call `train`."""


def learned(summary: dict[str, Any]) -> None:
    """Tuning finds what asynchronous workers learn with."""
    assert summary["best"]["value"] > 0.9
    assert summary["untuned"]["value"] < 0.5


def shown_in(page: str, *names: object) -> list[str]:
    """The lines of a page that have all of these names."""
    return [line for line in page.splitlines() if not missing_names(line, *names)]


def as_planned(summary: dict[str, Any], page: str) -> None:
    """The page shows what a run gives, as far as that follows from the plan."""
    ended = summary["trials"]
    assert shown_in(page, f"{ended['Completed']} completed", f"{ended['Stopped']} stopped")
    mentions(page, f"{summary['resource_used']} of 81")


def test_the_cluster_tutorial_shows_the_plan_of_its_job() -> None:
    page = ROOT / "docs" / "tutorials" / "cluster.md"
    [job] = [yaml_text.load(block.code)["tuning"] for block in blocks(page) if block.title == "job.yaml"]
    plan = lay_out(job["max_jobs"], **job["hyperband"])
    text = page.read_text(encoding="utf-8")
    assert shown_in(text, plan.resource, plan.full_resource, plan.trials, "units", "trials")
    assert shown_in(text, "units", f"{plan.resource} of {plan.full_resource}")
    for bracket in plan.brackets:
        rungs = "  ->  ".join(f"{size} to {rung}" for size, rung in zip(bracket.sizes, bracket.rungs, strict=True))
        assert f"    {rungs}" in text


@pytest.mark.ray
def test_the_readmes_first_job_trains_on_workers(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On 2 of the cluster's 16 CPUs, as on a small machine: one gang fits."""
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path))
    names: dict[str, Any] = {"__name__": "shown"}
    others = placement_group([{"CPU": 14}])
    assert others.wait(120)
    try:
        exec(blocks(ROOT / "README.md")[1].code, names)
    finally:
        remove_placement_group(others)
    assert names["booster"].num_boosted_rounds() == 27
    assert names["tuner"].describe()["HyperParameterTuningJobStatus"] == "Completed"


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "python"], ids=lambda block: block.where)
def test_python_imports_public_packages_only(block: Block) -> None:
    """Also where it is not run."""
    imported = {node.module or "" for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.split(".")[0] in ("hpo", "trainers")} <= PUBLIC


def lines(block: Block) -> Iterator[list[str]]:
    """Each `hpo` and `ray` command of a block, in words."""
    for line in block.commands.replace("\\\n", " ").splitlines():
        found = re.match(r"(?:[A-Z_]+=\S+ +)*((?:hpo|ray) .*)", line.strip())
        if found:
            words = shlex.split(found[1], comments=True)
            yield words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize(
    "block", [block for block in ALL if block.language in SHELL and [*lines(block)]], ids=lambda block: block.where
)
def test_every_command_is_there(block: Block) -> None:
    """Those that are not run as well."""
    for words in lines(block):
        resolve(root() if words[0] == "hpo" else ray_command, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_script_imports_ray_before_warmband(page: Path) -> None:
    """Ray would listen on all addresses."""
    for block in blocks(page):
        imported = re.findall(r"^(?:from|import) (\w+)", block.code, re.MULTILINE)
        ours = [name for name in imported if name in ("hpo", "trainers", "ray")]
        if block.language == "python":
            assert not ours[1:] or ours[0] != "ray" or {*ours} == {"ray"}, block.where


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose)
    assert [name for name in named if not (page.parent / name).exists()] == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def run(code: str, names: dict | None = None, *, workers: int) -> dict:
    """Runs a script in this process; where it has `workers`, they are simulated or left out."""
    assert f"num_workers={workers}" in code
    names = {"__name__": "shown", **(names or {})}
    exec(code.replace(f"num_workers={workers}", 'num_workers=0, resources_per_worker={"CPU": 1}'), names)
    return names


def shown(port: str) -> str:
    [code] = [code for name, code in BLOCKS if name == port]
    return code


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def first() -> dict:
    """What the page's first script leaves."""
    return run(BLOCKS[0][1], workers=2)


def test_the_first_script_learns(first: dict) -> None:
    assert first["result"].metrics["validation:accuracy"] > 0.9
    assert first["weights"]["0.weight"].shape == (32, 64)


def test_rows_of_a_shard_are_transformed() -> None:
    prepared = 'context.prepare_data("train", labels=torch.int64)'
    assert prepared in BLOCKS[0][1]
    names = run(shown("sharded") + BLOCKS[0][1].replace(prepared, "shifted(context)"), {"torch": torch}, workers=2)
    assert names["result"].metrics["validation:accuracy"] > 0.9


def test_the_recipe_learns(first: dict) -> None:
    names = run(shown("recipe"), first, workers=2)
    found = names["trainer"].fit({"train": names["data"].train, "validation": names["data"].validation})
    assert found.metrics["validation:accuracy"] > 0.9


@pytest.mark.ray
def test_a_checkpoint_in_shards_is_a_folder_and_is_loaded_whole(first: dict, ray_cluster: None, capsys) -> None:
    names = {**first}
    exec(shown("shards"), names)
    assert "shard-00000" in capsys.readouterr().out
    assert names["weights"]["0.weight"].shape == (32, 64)


def test_the_same_function_is_tuned_on_parameter_servers(first: dict, capsys) -> None:
    _, server, tuning = (code for name, code in BLOCKS if not name)
    server = server.replace('"mode"', '"num_workers": 4, "mode"').replace('"epochs": 10', '"epochs": 2')
    names = run(server, first, workers=4)
    result = names["trainer"].fit({"train": names["data"].train, "validation": names["data"].validation})
    details = result.details["parameter_server"]
    for said in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PYTORCH.split("details in the record:")[1], re.MULTILINE)[:5]:
        assert set(re.findall(r"`(\w+)`", said)) <= details.keys()
    exec(tuning, names)
    assert names["tuner"].best_training_job().endswith(("0", "1", "2", "3"))


def test_a_trainer_of_ones_own_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "own-trainers.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    vars(module).update(run(code, workers=2))
    trainer = module.trainer
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert (type(again), again.deepest) == (module.ShallowTrainer, 4)
    with refuses(ConfigurationError, field="max_depth", value=5, remedy="4"):
        again.with_hyperparameters({"max_depth": 5})
    spec = yaml_text.load(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    assert spec["trainer"].pop("trainer_class") == "shop.trainers:ShallowTrainer"
    made = CustomSpec(**spec["trainer"], trainer_class="shown:ShallowTrainer").trainer()
    assert made.to_json() == {**trainer.to_json(), "scaling": made.to_json()["scaling"]}


def test_the_original_and_its_port_train_alike() -> None:
    original, ours = (run(shown(port), workers=2)["result"].metrics["train:loss"] for port in ("original", "ours"))
    assert original < 0.5
    assert ours < 0.5


def test_a_port_changes_a_handful_of_lines() -> None:
    original, ours = ({line.split("  # (")[0] for line in shown(port).splitlines()} for port in ("original", "ours"))
    assert len(shown("ours").splitlines()) < len(shown("original").splitlines())
    assert len(ours - original) <= 16


@pytest.mark.process
def test_the_site_has_no_link_and_no_name_that_leads_nowhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "-f", "docs/site/mkdocs.yml", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    assert 'id="hpo.HyperparameterTuner.fit"' in (tmp_path / "reference" / "tuner.html").read_text(encoding="utf-8")
