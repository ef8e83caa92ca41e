"""Mixed precision and compilation: for a model and its copies, and for trial after trial."""

from __future__ import annotations

import torch

from tests.support.networks import assignment, close
from tests.support.trainers.pytorch.models import serve


def test_a_compiled_trial_ends_with_the_same_bits_whatever_its_gang_served_before(tmp_path):
    """With the C++ compiler: once alone, and once behind a trial of another batch, which no third compiles again."""
    words = {"per_worker_batch_size": 8}
    torch.compiler.reset()
    [fresh] = serve(assignment(tmp_path, name="fresh", **words), rows=16, compile=True)
    torch.compiler.reset()
    other = assignment(tmp_path, name="other", per_worker_batch_size=5)
    later, again = (assignment(tmp_path, name=name, **words) for name in ("later", "again"))
    _, after, repeated = serve(other, later, again, rows=16, compile=True)
    close(fresh, after, 0.0)
    close(fresh, repeated, 0.0)
    [plain] = serve(assignment(tmp_path, name="plain", **words, compiled=False), rows=16)
    close(fresh, plain, 1e-5)
