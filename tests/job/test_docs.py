"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import torch
from ray.scripts.scripts import cli as ray_command

from hpo.cli.command import root
from tests.support.docker.deployment import resolve
from tests.support.docs import (
    ALL,
    BLOCKS,
    PYTORCH,
    first,  # noqa: F401  # Fixtures.
    one_thread,  # noqa: F401  # Of every test.
    run,
    shown,
)
from tests.support.snippets import SHELL, Block


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


def test_rows_of_a_shard_are_transformed() -> None:
    prepared = 'context.prepare_data("train", labels=torch.int64)'
    assert prepared in BLOCKS[0][1]
    names = run(shown("sharded") + BLOCKS[0][1].replace(prepared, "shifted(context)"), {"torch": torch}, workers=2)
    assert names["result"].metrics["validation:accuracy"] > 0.9


def test_the_recipe_learns(first: dict) -> None:
    names = run(shown("recipe"), first, workers=2)
    found = names["trainer"].fit({"train": names["data"].train, "validation": names["data"].validation})
    assert found.metrics["validation:accuracy"] > 0.9


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


def test_the_original_and_its_port_train_alike() -> None:
    original, ours = (run(shown(port), workers=2)["result"].metrics["train:loss"] for port in ("original", "ours"))
    assert original < 0.5
    assert ours < 0.5
