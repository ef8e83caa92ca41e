"""Checkpoint files: whole or not there, on local disks and behind URIs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.refusals import mentions


@pytest.mark.parametrize("kind", ["size=16k", "ro"])
def test_a_full_disk_and_a_read_only_one_are_refused(kind: str, tmp_path: Path) -> None:
    """In a mount namespace of its own, which ends with the process; that takes the rights of root."""
    script = (
        "import sys; from pathlib import Path\n"
        "from trainers import storage; from trainers.errors import WarmbandError\n"
        "try: Path(sys.argv[1], 'filler').write_bytes(bytes(100_000))\n"
        "except OSError: pass\n"
        "try: storage.check_writable(sys.argv[1])\n"
        "except WarmbandError as error: print(type(error).__name__, error)\n"
        "try: storage.write(sys.argv[1] + '/000001', bytes(100_000))\n"
        "except WarmbandError as error: print(type(error).__name__, error)\n"
    )
    mounted = f'mount -t tmpfs -o {kind} tmpfs {tmp_path} && exec {sys.executable} -c "$0" {tmp_path}'
    done = subprocess.run(["unshare", "-m", "sh", "-c", mounted, script], capture_output=True, text=True, timeout=60)
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ConfigurationError", "StorageError"], done
    mentions(lines[0], "storage_path")
    for line in lines:
        mentions(line, str(tmp_path), "disk" if kind != "ro" else "read-only")
