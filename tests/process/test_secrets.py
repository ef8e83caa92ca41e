"""Planted secrets: a job uses a password, keys and a token, and none of them is found anywhere afterwards."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

from tests.support.secrets import ProcessList, found


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    assert found("planted", b"..planted..")
    assert found("planted", b"PNG" + zlib.compress(b"some text, planted in it"))
    assert not found("planted", b"PNG" + zlib.compress(b"some text"))
    with ProcessList() as processes:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1)", "planted-here"], check=True, timeout=60)
    assert any(b"planted-here" in line for line in processes.lines)
