"""What each strategy's name is turned into."""

from __future__ import annotations

import subprocess
import sys


def test_job_files_are_checked_without_waiting_for_ray() -> None:
    """Strategies import it where a job begins."""
    code = (
        "import sys; from hpo.strategies import STRATEGIES, strategy_from_json\n"
        "plans = [strategy_from_json(name, None).plan({}, 1, 9) for name in STRATEGIES]\n"
        "loaded = [name for name in ('ray', 'scipy.stats', 'sklearn') if name in sys.modules]\n"
        "sys.exit(', '.join(loaded) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
