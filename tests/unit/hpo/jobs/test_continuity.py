"""Digests of a job's own code, and words for other versions and other code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo.jobs.continuity import MOST_FILES, contents_of, differences

VERSIONS = {"python": "3.12.1", "warmband": "0.1.0", "ray": "2.60.0", "xgboost": "3.2.0", "cpus": 2}


def spec_of(folder: Path, entry_point: str = "train.py") -> dict[str, Any]:
    options = {"source_dir": str(folder), "entry_point": entry_point}
    return {"estimator": {"trainer": "ScriptTrainer", "options": options}, "strategy": "Hyperband"}


def several(folder: Path) -> dict[str, Any]:
    parts = {"own": spec_of(folder)["estimator"], "boosted": {"trainer": "XGBoostTrainer", "options": {}}}
    options = {"trainers": parts}
    return {"estimator": {"trainer": "SeveralTrainers", "options": options}, "strategy": "Random"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "parts").mkdir(parents=True)
    (source / "__pycache__").mkdir()
    for name in ("train.py", "parts/net.py", "run", "rows.csv", "__pycache__/net.py", "conf.yaml"):
        (source / name).write_text(name)
    return source


def test_a_program_has_digests_of_its_code_and_settings_but_not_of_its_data(folder: Path) -> None:
    assert set(contents_of(spec_of(folder))) == {"train.py", "parts/net.py", "conf.yaml"}
    assert set(contents_of(spec_of(folder, "run"))) == {"run", "train.py", "parts/net.py", "conf.yaml"}
    assert contents_of(several(folder)) == contents_of(spec_of(folder))


def test_the_same_code_elsewhere_has_the_same_digests(folder: Path, tmp_path: Path) -> None:
    before = contents_of(spec_of(folder))
    assert contents_of(spec_of(folder.rename(tmp_path / "moved"))) == before


def test_code_that_is_not_here_has_none(tmp_path: Path) -> None:
    assert contents_of(spec_of(tmp_path / "gone")) == {}


def test_many_files_have_one_digest(folder: Path) -> None:
    for number in range(MOST_FILES):
        (folder / f"part_{number}.py").touch()
    before = contents_of(spec_of(folder))
    assert set(before) == {"source/"}
    (folder / "part_7.py").write_text("7")
    assert differences({"contents": before}, {}, contents_of(spec_of(folder))) == ["source/ has another content"]


def test_a_module_counts_with_its_package_and_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "nets").mkdir(parents=True)
    for name in ("shop/__init__.py", "shop/rows.py", "shop/nets/__init__.py", "shop/nets/small.py", "alone.py"):
        (tmp_path / name).write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)

    def of(name: str) -> set[str]:
        options = {"train_loop_per_worker": name}
        return set(contents_of({"estimator": {"trainer": "TorchTrainer", "options": options}, "strategy": "Random"}))

    package = {"shop/__init__.py", "shop/rows.py", "shop/nets/__init__.py", "shop/nets/small.py"}
    assert of("shop.nets.small:train") == of("shop.rows:train") == of("shop.nets:train") == of("shop:train") == package
    assert of("alone:train") == {"alone.py"}
    assert of("__main__:train") == of("nowhere:train") == of("shop.nowhere:train") == of("math:sqrt") == set()


@pytest.mark.parametrize(
    ("versions", "contents", "said"),
    [
        pytest.param({}, {}, [], id="the same"),
        pytest.param({"cpus": 64}, {"new.py": "3"}, [], id="another machine, and a new file"),
        pytest.param({"xgboost": "3.3.0"}, {}, ["xgboost is 3.3.0, and was 3.2.0"], id="a version"),
        pytest.param({"torch": "2.13"}, {}, ["torch is 2.13, and was not installed"], id="newly installed"),
        pytest.param({}, {"train.py": "3"}, ["train.py has another content"], id="a file"),
        pytest.param({}, {"train.py": "3", "net.py": "3"}, ["train.py, net.py have another content"], id="files"),
        pytest.param({}, {"net.py": None}, ["net.py is gone"], id="a file that is gone"),
    ],
)
def test_differences_are_named(versions: dict[str, Any], contents: dict[str, Any], said: list[str]) -> None:
    before = {"environment": VERSIONS, "contents": {"train.py": "1", "net.py": "2"}}
    now = {name: digest for name, digest in {**before["contents"], **contents}.items() if digest is not None}
    assert differences(before, {**VERSIONS, **versions}, now) == said


def test_a_record_that_says_nothing_differs_in_nothing() -> None:
    assert differences({}, VERSIONS, {"train.py": "1"}) == []
