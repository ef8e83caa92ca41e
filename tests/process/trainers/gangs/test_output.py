"""A worker's output, found where Ray has put it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trainers.gangs.worker.output import found


def test_a_process_names_the_file_that_it_writes_to(tmp_path: Path) -> None:
    file = tmp_path / "worker.err"
    code = "import sys; from trainers.gangs.worker.output import own; sys.stderr.write(own('10.0.0.7'))"
    with file.open("w") as written:
        subprocess.run([sys.executable, "-c", code], stderr=written, check=True, timeout=60)
    assert found(file.read_text()) == ("10.0.0.7", file)
