"""What is trained in a comparison: twins, shuffled rows, and a score for what diverged."""

from __future__ import annotations

from pathlib import Path

from experiments.convergence.cases import image_case, xgboost_case
from experiments.convergence.causes import changes
from experiments.shared.published import Options


def test_a_twin_differs_in_the_number_of_workers_alone(tmp_path: Path) -> None:
    case = image_case(Options(quick=True, out=tmp_path), 3, real=False)
    blog = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "epochs": 3, "mode": "async"}
    assert case.alone().hyperparameters == blog | {"num_workers": 1}
    assert case.distributed().hyperparameters == blog | {"num_workers": 4, "link_bytes_per_second": 125_000_000}
    assert case.alone().in_hand
    real = image_case(Options(quick=True, out=tmp_path), 3, real=True)
    assert (real.alone().workers, real.distributed().workers) == (1, 4)
    assert real.alone().workers_for(real.alone().hyperparameters) == 1
    boosted = xgboost_case(Options(quick=True, out=tmp_path), 7)
    assert not boosted.simulated
    assert (boosted.alone().workers, boosted.distributed().workers) == (1, 3)
    assert boosted.alone().hyperparameters == boosted.distributed().hyperparameters
    exact = boosted.exact()
    assert exact is not None
    assert exact.hyperparameters == boosted.alone().hyperparameters | {"tree_method": "exact"}
    assert (exact.workers, case.exact()) == (1, None)


def test_columns_keep_their_names(tmp_path: Path) -> None:
    case = xgboost_case(Options(quick=True, out=tmp_path), 2)
    [change] = changes(case.run)[0]
    shuffled = case.rows(change, 5)["train"].read_whole()
    assert shuffled.feature_names == case.channels["train"].read_whole().feature_names
