"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from hpo.job_file.trainer_models import CustomSpec
from tests.support import yaml_text
from trainers import ConfigurationError
from trainers.registry import trainer_from_json

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTORCH = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- (?:port|shown): (\w+) -->\n)?```python\n(.*?)```", PYTORCH, re.DOTALL)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_script_imports_ray_before_warmband(page: Path) -> None:
    """Ray would listen on all addresses."""
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        imported = re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE)
        ours = [name for name in imported if name in ("hpo", "trainers", "ray")]
        assert not ours[1:] or ours[0] != "ray" or {*ours} == {"ray"}, code


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


def test_the_same_function_is_tuned_on_parameter_servers(first: dict, capsys) -> None:
    _, server, tuning = (code for name, code in BLOCKS if not name)
    server = server.replace('"mode"', '"num_workers": 4, "mode"').replace('"epochs": 10', '"epochs": 2')
    names = run(server, first, workers=4)
    result = names["trainer"].fit({"train": names["data"].train, "validation": names["data"].validation})
    details = result.details["parameter_server"]
    for said in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PYTORCH.split("What happened is in")[1], re.MULTILINE)[:5]:
        assert set(re.findall(r"`(\w+)`", said)) <= details.keys()
    exec(tuning, names)
    assert names["tuner"].best_training_job().endswith(("0", "1", "2", "3"))


def test_the_readmes_job_finds_what_asynchronous_workers_learn_with(capsys) -> None:
    [script] = [code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "ParameterServer" in code]
    names = run(script.replace('"mode": "async"', '"num_workers": 4, "mode": "async"'), workers=4)
    summary = names["tuner"].describe()["Summary"]
    assert summary["best"]["value"] > 0.9
    assert summary["best"]["value"] > summary["untuned"]["value"]


def test_a_trainer_of_ones_own_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "own-trainers.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    vars(module).update(run(code, workers=2))
    trainer = module.trainer
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert (type(again), again.deepest) == (module.ShallowTrainer, 4)
    with pytest.raises(ConfigurationError, match="max_depth is 5; give 4 or less"):
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
