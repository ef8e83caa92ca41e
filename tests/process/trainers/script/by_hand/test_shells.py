"""The printed command in shells: the program gets its words, whatever they are, and a missing channel is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.refusals import mentions
from trainers import ScalingConfig, ScriptTrainer

TELLS = """
import json, os, sys
with open(os.environ["TOLD"], "w") as file:
    json.dump([sys.argv[1:], os.environ.get("SM_CHANNEL_TRAIN")], file)
"""
VALUES = {
    "quotes": 'it\'s "mine" `date`',
    "lines": "one\ntwo\\\n",
    "dollar": "$HOME ${HOME} $(date) !!",
    "unicode": "größe 漢字 🙂",
    "dash": "-rf",
    "empty": "",
    "stars": "* ? [a] ~ # & ; | < > {a,b}",
}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_gets_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, workers: int) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path('it\'s my "source" $folder')
    source.mkdir()
    (source / "train.py").write_text(TELLS)
    made = ScriptTrainer(
        "train.py",
        source_dir=source,
        scaling=ScalingConfig(num_workers=workers),
        environment={"TOLD": str(tmp_path / "told $1")},
    )
    subprocess.run([shell, "-c", made.command_line(VALUES)], timeout=60, check=True, cwd="/")
    [arguments, _] = json.loads((tmp_path / "told $1").read_text())
    assert arguments == [
        word
        for name, value in VALUES.items()
        for word in ([f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value])
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_channel_that_is_not_given_is_said(tmp_path: Path, workers: int) -> None:
    (tmp_path / "train.py").write_text(TELLS)
    scaling = ScalingConfig(num_workers=workers)
    made = ScriptTrainer("train.py", source_dir=tmp_path, scaling=scaling, environment={"TOLD": str(tmp_path / "told")})
    line = made.command_line({}, {"train": ([[1.0], [2.0]], [0, 1])})
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    mentions(done.stderr, "SM_CHANNEL_TRAIN")
    assert not (tmp_path / "told").exists()
    subprocess.run(["sh", "-c", f"export SM_CHANNEL_TRAIN='/my data'\n{line}"], timeout=60, check=True)
    assert json.loads((tmp_path / "told").read_text())[1] == "/my data"
