"""What the cost of programs comes to, and that talking.py works as it is measured."""

from __future__ import annotations

import subprocess
import sys

from experiments.program_cost import KEPT


def test_the_program_that_talks_prints_a_line_a_piece_of_work() -> None:
    words = [sys.executable, str(KEPT / "talking.py"), "--lines", "3", "--turns", "5"]
    *lines, last = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.partition(" loss ")[0] for line in lines] == ["step 0", "step 1", "step 2"]
    assert float(last.removeprefix("elapsed=")) > 0
