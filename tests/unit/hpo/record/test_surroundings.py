"""What is said of where a job ran."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from hpo.record.surroundings import commit_of, environment


def test_the_environment_names_versions_and_the_machine() -> None:
    found = environment()
    assert found["python"] == platform.python_version()
    assert (found["ray"], found["xgboost"]) == (version("ray"), version("xgboost"))
    assert found["cpus"] >= 1
    assert found["memory_bytes"] > 1 << 28
    assert found["gpus"] >= 0
    assert json.loads(json.dumps(found)) == found


COMMIT, OTHER = "a1" * 20, "b2" * 20


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({"HEAD": COMMIT}, COMMIT),
        ({"HEAD": "ref: refs/heads/main", "refs/heads/main": COMMIT}, COMMIT),
        (
            {
                "HEAD": "ref: refs/heads/main",
                "packed-refs": f"# pack-refs\n{OTHER} refs/heads/x\n{COMMIT} refs/heads/main",
            },
            COMMIT,
        ),
        ({"HEAD": "ref: refs/heads/main"}, ""),
        ({"HEAD": "ref: refs/heads/main", "refs/heads/main": "nonsense"}, ""),
        ({}, ""),
    ],
)
def test_the_commit_is_that_of_the_repository_around_a_folder(
    files: dict[str, str], commit: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        file = tmp_path / ".git" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    inner = tmp_path / "src" / "jobs"
    inner.mkdir(parents=True)
    assert commit_of(inner) == commit


def test_the_commit_of_a_worktree_is_its_own(tmp_path: Path) -> None:
    own = tmp_path / "main/.git/worktrees/other"
    own.mkdir(parents=True)
    (tmp_path / "main/.git/refs/heads").mkdir(parents=True)
    (tmp_path / "main/.git/refs/heads/other").write_text(f"{COMMIT}\n")
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.git").write_text(f"gitdir: {own}\n")
    assert commit_of(tmp_path / "other") == COMMIT
