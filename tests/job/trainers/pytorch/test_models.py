"""Mixed precision and compilation: for a model and its copies, and for trial after trial."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from tests.support.networks import assignment, close
from tests.support.trainers.pytorch.models import serve


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch):
    """What is compiled, by PyTorch's own compiler without the C++ behind it, which takes seconds each time."""
    found = []

    def backend(graph, inputs):
        found.append(graph)
        return graph.forward

    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    yield found
    torch.compiler.reset()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_trials_that_are_alike_share_what_was_compiled_for_the_first(graphs, tmp_path, precision):
    words = {"per_worker_batch_size": 8}
    trials = [assignment(tmp_path, name=f"{at}", **words, lr=0.1 / (at + 1)) for at in range(10)]
    first, *_ = serve(*trials, compile=True, precision=precision)
    assert len(graphs) == 2  # Batches of 8 rows, and the last one of a pass.
    plain, *_ = serve(assignment(tmp_path, name="plain", **words, compiled=False), precision=precision)
    close(first, plain, 1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_tuned_widths_are_compiled_however_many_there_were(graphs, tmp_path, precision):
    trials = [assignment(tmp_path, stop=1, name=f"{at}", per_worker_batch_size=8, width=at) for at in range(1, 13)]
    found = serve(*trials, rows=8, compile=True, precision=precision)
    assert [len(state["0"]) for state in found] == [*range(1, 13)]


def test_tuned_batches_are_compiled_however_many_there_were(graphs, tmp_path):
    trials = [assignment(tmp_path, stop=1, name=f"{at}", per_worker_batch_size=at) for at in range(2, 13)]
    assert len(serve(*trials, rows=13, compile=True)) == 11
