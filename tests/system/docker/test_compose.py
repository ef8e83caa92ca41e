"""compose.yaml: what it names is there, nothing listens beyond this machine, and its secrets stay secret."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.support import yaml_text
from tests.support.docker.deployment import DOCKER, read
from tests.support.programs import COMPOSE_SCHEMA

FILES = ("compose.yaml", "compose.gpu.yaml")
SERVICES = read("compose.yaml")["services"]


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_valid_by_the_specification_s_schema(name: str) -> None:
    found = read(name)
    found.pop("name", None)  # Newer than Debian's copy.
    jsonschema.Draft202012Validator(json.loads(COMPOSE_SCHEMA.read_text())).validate(found)


@pytest.mark.parametrize("names", [FILES[:1], FILES], ids=["alone", "with GPUs"])
def test_docker_compose_takes_it(names: tuple[str, ...], tmp_path: Path) -> None:
    """Debian's, which knows no `name` yet; it resolves variables and references, and lays one file over the other."""
    for name in names:
        text = (DOCKER / name).read_text()
        (tmp_path / name).write_text(re.sub(r"^name: .*\n", "", text, flags=re.MULTILINE))
    files = [argument for name in names for argument in ("--file", name)]
    done = subprocess.run(
        ["docker-compose", *files, "config"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    made = yaml_text.load(done.stdout)["services"]
    assert made.keys() == SERVICES.keys()
    for name in ("head", "worker"):
        image = made[name]["image"]
        assert image.endswith("-gpu") == (len(names) > 1)
        assert made[name]["secrets"], "what the other file does not name is kept"
