"""Every `hpo` and `ray` command in docker/ and its page is one that there is, with options that it takes."""

from __future__ import annotations

import pytest
from ray.scripts.scripts import cli as ray_command

from hpo.cli.command import root
from tests.support.docker.deployment import commands, resolve
from tests.support.refusals import refuses

FOUND = [*commands()]


@pytest.mark.parametrize(("file", "words"), FOUND, ids=[f"{file}: {' '.join(words)}"[:90] for file, words in FOUND])
def test_a_command_is_there(file: str, words: list[str]) -> None:
    resolve(root() if words[0] == "hpo" else ray_command, words)


def test_commands_are_found_where_they_stand() -> None:
    files = {file for file, _ in FOUND}
    assert {
        "docker/compose.yaml",
        "docker/cluster-aws.yaml",
        "docker/kuberay/rayjob.yaml",
        "docs/guides/deploying.md",
    } <= files
    said = [" ".join(words) for _, words in FOUND]
    for start in (
        "ray start --head --block",
        "ray start --block --address=head:6379",
        "ray up ",
        "hpo submit ",
        "hpo tune ",
    ):
        assert [text for text in said if text.startswith(start)], start


@pytest.mark.parametrize(
    ("line", "wrong"),
    [("hpo submitt x", "submitt"), ("hpo tune x --nodes=3", "--nodes"), ("ray start --heads", "--heads")],
)
def test_a_wrong_command_would_be_noticed(line: str, wrong: str) -> None:
    with refuses(Exception, field=wrong):
        resolve(root() if line.startswith("hpo") else ray_command, line.split())
