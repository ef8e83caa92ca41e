"""`make demo`: what it prints and the page that it writes, on workers of Ray."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DEADLINE = 900
"""Seconds; the demo takes one to two minutes on two quiet cores, and several times that beside other tests."""


def test_the_demo_shows_what_four_workers_break_and_that_tuning_repairs_it(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-m", "experiments.demo", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    network, xgboost, bill, page = done.stdout.splitlines()[-4:]
    alone, unchanged, tuned = (float(value) for value in re.findall(r"(0\.\d+) ±", network))
    apart = re.search(r"(\d+|inf) standard errors apart", network)
    assert unchanged < 0.5 < 0.8 < min(alone, tuned)
    assert apart
    assert float(apart[1]) > 5
    waited = re.search(r"waited ([\d.]+) s .* waited ([\d.]+) s", xgboost)
    assert waited
    assert float(waited[1]) > float(waited[2])
    assert re.search(r"\d+ worker-seconds; the forecast said \d+", bill)
    assert page == f"The page: {(tmp_path / 'index.html').as_uri()}"
    html = (tmp_path / "index.html").read_text()
    assert html.index("What four workers break") < html.index("The network&#39;s search")
    assert "warning" not in (done.stdout + done.stderr + (tmp_path / "log.txt").read_text()).lower()
