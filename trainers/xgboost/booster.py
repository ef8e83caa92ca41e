"""The booster of one segment: its checkpoint and its parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainers import storage
from trainers.errors import ConfigurationError, DataError
from trainers.gangs import WORKERS, Assignment, one_line
from trainers.xgboost.model_bytes import FlawedModelError, check_model
from trainers.xgboost.parameters import ALIASES, MAXIMIZE, PATIENCE, ROUNDS

CPU, GPU = "cpu", "cuda"
PREPARATION = "warmband_preparation"
"""Attribute of a model that says how its rows were prepared."""


def load_booster(
    checkpoint: str | None,
    parameters: dict[str, Any],
    matrices: Sequence[Any] = (),
    read: Callable[[str], bytes] = storage.read,
    *,
    known: bool = False,
) -> Any:
    """A booster with the model of a checkpoint, or with none.

    Args:
        checkpoint: URI of it; None for none.
        parameters: of the booster.
        matrices: that it will see.
        read: reads the bytes of a URI.
        known: `read` compares the bytes with the digest of those that XGBoost wrote.

    Raises:
        DataError: the checkpoint is not there, or no whole model.
    """
    import xgboost

    if checkpoint is None:
        return xgboost.Booster(parameters, matrices)
    return _loaded(checkpoint, read(checkpoint), parameters, matrices, known=known)


def note_preparation(booster: Any, preparation: Mapping[str, Any]) -> None:
    """Write into a model how its rows were prepared, so that whoever predicts with it prepares rows alike.

    Args:
        booster: the model.
        preparation: as `Channel.preparation` has it; empty leaves the model as it is.
    """
    if preparation:
        booster.set_attr(**{PREPARATION: json.dumps(preparation)})


def preparation_of(booster: Any) -> dict[str, Any]:
    """Return how the rows of a model were prepared, as `note_preparation` wrote it; empty where nothing was."""
    found: dict[str, Any] = json.loads(booster.attr(PREPARATION) or "{}")
    return found


def first_rounds(booster: Any, rounds: int) -> Any:
    """A model of trees after some rounds, with the names of its categories, which a slice of XGBoost 3.2 is without.

    Args:
        booster: it has as many rounds, or more.
        rounds: of the model.
    """
    import xgboost

    part = booster[:rounds]
    if "c" not in (booster.feature_types or ()):
        return part
    whole, cut = (json.loads(bytes(model.save_raw("json"))) for model in (booster, part))
    cut["learner"]["gradient_booster"]["model"]["cats"] = whole["learner"]["gradient_booster"]["model"]["cats"]
    return xgboost.Booster(model_file=bytearray(json.dumps(cut).encode()))


def read_model(checkpoint: str, read: Callable[[str], bytes] = storage.read) -> bytes:
    """A checkpoint's bytes, for others to load: what XGBoost says of them here is clearer than what it says there.

    Raises:
        DataError: the checkpoint is not there, or no whole model.
    """
    raw = read(checkpoint)
    _loaded(checkpoint, raw, {}, known=False)
    return raw


def _loaded(
    checkpoint: str, raw: bytes, parameters: dict[str, Any], matrices: Sequence[Any] = (), *, known: bool
) -> Any:
    import xgboost

    if not raw:
        raise _flawed(checkpoint, "it is empty")
    if not known:
        try:
            check_model(raw)
        except FlawedModelError as error:
            raise _flawed(checkpoint, f"no model of XGBoost's, since {error}") from error
    try:  # Parameters are only stored here: XGBoost looks at them when it trains.
        return xgboost.Booster(parameters, matrices, model_file=bytearray(raw))
    except (xgboost.core.XGBoostError, UnicodeDecodeError) as error:  # It quotes bytes that may be no text.
        raise _flawed(checkpoint, f"XGBoost finds no model in it ({one_line(error)})") from error


def _flawed(checkpoint: str, why: str) -> DataError:
    return DataError(
        f"checkpoint {storage.shown(checkpoint)!r} is cut short or no checkpoint: {why}; restore the file, or train "
        "again"
    )


def booster_parameters(
    assignment: Assignment, cpus: int, *, use_gpu: bool = False, gpus: Sequence[int] = ()
) -> dict[str, Any]:
    """XGBoost's parameters for one segment of a trial, under its own names.

    A `seed` among the hyperparameters goes before the trial's: a training in one segment then draws what
    `xgboost.train` draws with it.

    Args:
        assignment: the segment.
        cpus: cores that the worker holds.
        use_gpu: it holds a GPU too.
        gpus: the numbers of its GPUs in its process, where there may be others; it trains on the first.
    """
    given = assignment.hyperparameters
    ours = (*ROUNDS, WORKERS, PATIENCE, MAXIMIZE)
    parameters = {
        ALIASES.get(name, name): _told(name, value)
        for name, value in given.items()
        if name not in ours and value is not None
    }
    parameters.setdefault("verbosity", 1)
    if (device := device_of(given, use_gpu=use_gpu, gpus=gpus)) != CPU:
        parameters["device"] = device
    parameters["nthread"] = threads_of(given) or cpus
    own = parameters.get("seed")
    trial_seed = assignment.seed if own is None else int(own)
    first = own is not None and assignment.start == 0
    parameters["seed"] = trial_seed if first else segment_seed(trial_seed, assignment.start)
    return parameters


def device_of(hyperparameters: Mapping[str, Any], *, use_gpu: bool, gpus: Sequence[int] = ()) -> str:
    """Where XGBoost trains: on what was given, else on the GPU that a worker holds, else on the CPU.

    A GPU that has no number of its own is the worker's first: to XGBoost it would be the first that the process sees.
    """
    device = str(hyperparameters.get("device") or (GPU if use_gpu else CPU))
    return f"{GPU}:{gpus[0]}" if device in (GPU, "gpu") and gpus else device


def check_device(device: str) -> None:
    """Refuses a GPU that XGBoost does not see here: it would train on the CPU instead, without a word.

    Raises:
        ConfigurationError: naming what to look at.
    """
    import numpy as np
    import xgboost

    with xgboost.config_context(verbosity=0):
        row = xgboost.DMatrix(np.zeros((1, 1), np.float32), label=np.zeros(1, np.float32), nthread=1)
        config = xgboost.Booster({"device": device, "nthread": 1}, [row]).save_config()
    if json.loads(config)["learner"]["generic_param"]["device"] == CPU:
        raise ConfigurationError(
            f"XGBoost was to train on device {device!r}, and sees no GPU in this process; check that nvidia-smi lists "
            "one on this machine and that the installed xgboost is built for CUDA, or leave out use_gpu and device"
        )


def _told(name: str, value: Any) -> Any:
    """A value in the one form that XGBoost takes, among those that its users and JSON write."""
    if name == "monotone_constraints" and isinstance(value, list):
        return tuple(value)
    if name == "interaction_constraints" and isinstance(value, list):
        # Lists of names are turned into places by XGBoost's Python package, lists of places are not.
        return value if any(isinstance(column, str) for group in value for column in group) else str(value)
    return value


def threads_of(hyperparameters: Mapping[str, Any]) -> int:
    """The threads that hyperparameters ask for; 0 for all that a worker holds, which XGBoost also spells -1."""
    given = (hyperparameters.get(name) for name in ("nthread", "n_jobs"))
    return max([0, *(int(threads) for threads in given if threads is not None)])


def segment_seed(trial_seed: int, start: int) -> int:
    """A seed for the segment that begins at `start` rounds, so that segments do not draw the same columns again."""
    digest = hashlib.blake2b(f"{trial_seed}:{start}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1  # XGBoost takes a signed 32-bit seed.
