"""Files as they are read: damage is named with its place, and a worker holds its own rows alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd


def test_a_worker_holds_its_own_rows_of_a_large_csv(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    block = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (50_000, 40))).to_csv(index=False, header=False)
    path.write_text(block * 10)
    program = textwrap.dedent(
        """
        import sys, tracemalloc
        import pandas, pyarrow  # Arrow imports pandas when it first makes arrays.
        from trainers.channels import Channel
        channel = Channel.of(sys.argv[1])
        tracemalloc.start()
        assert channel.read(3, 10).features.shape == (50_000, 39)
        print(pyarrow.total_allocated_bytes(), pyarrow.default_memory_pool().max_memory())
        print(tracemalloc.get_traced_memory()[1])
        """
    )
    # Arrow reads some blocks ahead, in its own pool. NumPy tells tracemalloc of its arrays.
    answer = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    left, blocks, arrays = map(int, answer.stdout.split())
    # The whole is 156 MB as parsed and 78 MB as float32; the shard is 7.8 MB, twice while its pieces are put together.
    assert left == 0
    assert blocks < 80e6
    assert arrays < 20e6
