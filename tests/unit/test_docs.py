"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from hpo.job_file.trainer_models import CustomSpec
from hpo.strategies import HyperbandStrategy
from tests.support import yaml_text
from tests.support.docs import (
    ALL,
    first,  # noqa: F401  # Fixtures.
    one_thread,  # noqa: F401  # Of every test.
    run,
    shown,
    shown_in,
)
from tests.support.refusals import refuses
from tests.support.snippets import PAGES, REASONS, ROOT, RUN, SHOWN, Block, blocks
from trainers import ConfigurationError
from trainers.registry import trainer_from_json

README = (ROOT / "README.md").read_text(encoding="utf-8")


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
    "needs a cluster, a server or a cloud account": 38,
    "takes minutes": 31,
    "is a reference, whose commands are parsed": 29,
    "needs a container engine": 2,
    "downloads data": 2,
    "shows an error on purpose": 2,
    "installs packages": 2,
    "follows a block that is not run": 1,
}


def test_the_cluster_tutorial_shows_the_plan_of_its_job() -> None:
    page = ROOT / "docs" / "start" / "cluster.md"
    [job] = [yaml_text.load(block.code)["tuning"] for block in blocks(page) if block.title == "job.yaml"]
    plan = HyperbandStrategy(**job["hyperband"]).plan({}, job["max_jobs"], None)
    text = page.read_text(encoding="utf-8")
    assert shown_in(text, plan.resource, plan.full_resource, plan.trials, "units", "trials")
    assert shown_in(text, "cost", "units", f"{plan.resource} of {plan.full_resource}")
    for bracket in plan.brackets:
        rungs = "  ->  ".join(f"{size} to {rung}" for size, rung in zip(bracket.sizes, bracket.rungs, strict=True))
        assert f"    {rungs}" in text


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "python"], ids=lambda block: block.where)
def test_python_imports_public_packages_only(block: Block) -> None:
    """Also where it is not run."""
    imported = {node.module or "" for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.split(".")[0] in ("hpo", "trainers")} <= PUBLIC


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
    assert len(README.splitlines()) <= 110


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_first_script_learns(first: dict) -> None:
    assert first["result"].metrics["validation:accuracy"] > 0.9
    assert first["weights"]["0.weight"].shape == (32, 64)


def test_a_trainer_of_ones_own_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / "own-trainers.md").read_text(encoding="utf-8")
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


def test_a_port_changes_a_handful_of_lines() -> None:
    original, ours = ({line.split("  # (")[0] for line in shown(port).splitlines()} for port in ("original", "ours"))
    assert len(shown("ours").splitlines()) < len(shown("original").splitlines())
    assert len(ours - original) <= 16
