"""compose.yaml: what it names is there, nothing listens beyond this machine, and its secrets stay secret."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path

from hpo.serve import Tokens
from tests.support.docker.deployment import DOCKER, ROOT, read

SERVICES = read("compose.yaml")["services"]


def test_secrets_are_files_that_the_script_makes(tmp_path: Path) -> None:
    copy = tmp_path / "docker"
    copy.mkdir()
    shutil.copy(DOCKER / "make-secrets.sh", copy)
    for _ in range(2):
        subprocess.run(["sh", str(copy / "make-secrets.sh")], check=True, capture_output=True, timeout=60)
    made = {path.name: path.read_text() for path in (copy / "secrets").iterdir()}
    declared = read("compose.yaml")["secrets"]
    # The server has the digests of its tokens alone.
    assert {Path(secret["file"]).name for secret in declared.values()} == set(made) - {"serve_token"}
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(declared)
    for name, text in made.items():
        assert stat.S_IMODE((copy / "secrets" / name).stat().st_mode) == 0o640
        assert re.fullmatch(r"[0-9a-f]{64}", text) or name in ("store_url", "serve_tokens")
    assert len(set(made.values())) == 6
    assert made["store_url"] == f"postgresql://warmband:{made['postgres_password']}@postgres/warmband"
    tokens = Tokens(copy / "secrets" / "serve_tokens")
    assert (found := tokens.find(made["serve_token"])) is not None
    assert (found.name, found.rights) == ("first", "act")
    assert re.fullmatch(r"WARMBAND_GID=\d+\n", (copy / ".env").read_text())
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"docker/secrets/", "docker/.env"} <= set(ignored)
