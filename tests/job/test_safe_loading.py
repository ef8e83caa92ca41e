"""What is read back from storage is never executed: no loader that could, and files made to try it."""

from __future__ import annotations

import ast
import io
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from ray.train import ScalingConfig

from tests.support.processes import ROOT
from tests.support.refusals import mentions, refuses
from tests.support.safe_loading import (
    Attack,
    going_on,
    rows,  # noqa: F401  # Fixtures.
)
from trainers import Channel, DataError, Trainer, TrialError, XGBoostTrainer, checkpoint
from trainers.channels import open_channels
from trainers.checkpoint import File, Manifest
from trainers.parameter_server.trainer import ParameterServerTrainer
from trainers.pytorch.allreduce_trainer import TorchTrainer
from trainers.pytorch.context import TrainContext
from trainers.pytorch.state import TorchCheckpoint
from trainers.result import serve_alone

PACKAGES = ("trainers", "hpo", "experiments")

ALLOWED = {
    # What the workers and servers of one gang send each other, over connections that showed the gang's own token. An
    # optimizer may be a class of the user's own script.
    "trainers/parameter_server/opening.py": {"ray.cloudpickle", "torch.load(weights_only=False)"},
    "trainers/parameter_server/server/listener.py": {"pickle", "pickle.loads"},
    "trainers/parameter_server/wire.py": {"pickle", "pickle.loads"},
    # Writes generated data in the form that nanoGPT reads.
    "experiments/public/data.py": {"pickle"},
    # A user's program, and the file that it wrote itself.
    "experiments/programs/sklearn_partial_fit.py": {"joblib", "joblib.load"},
    # What pickles say of a value is hashed, and never read back; the user's program is what it runs.
    "trainers/script/module/warmband/__init__.py": {"marshal", "pickle"},
    "trainers/script/module/warmband_host.py": {"compile", "exec"},
    # The name of the error that Ray raises where a program cannot be pickled.
    "trainers/gangs/gang.py": {"pickle"},
    # The name of the error that `torch.load(weights_only=True)` raises.
    "trainers/pytorch/state/checkpoint.py": {"pickle"},
}
"""Modules that may use what runs code on loading, and what; no file or store is read with it."""

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "ray.cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.full_load",
    "pandas.read_pickle",
    "pandas.read_hdf",
    "torch.package.PackageImporter",
    "torch.jit.load",
    "torch.hub.load",
}


def forbidden(source: str) -> Iterator[str]:
    """What a module uses that could run what it loads."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({(alias.asname or alias.name.partition(".")[0]): alias.name for alias in node.names})
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        if isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
            yield from (f"{node.module}.{a.name}" for a in node.names if f"{node.module}.{a.name}" in MODULES)
            yield from (str(node.module) for alias in node.names if node.module in MODULES)
    names |= {"np": "numpy", "pd": "pandas"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        first, _, rest = ast.unparse(node.func).partition(".")
        called = ".".join(filter(None, (names.get(first, first), rest)))
        said = {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg}
        module, _, function = called.rpartition(".")
        if called in CALLS or (module in MODULES and function in ("load", "loads")):
            yield called
        if called == "torch.load" and said.get("weights_only") != "True":
            yield f"torch.load(weights_only={said.get('weights_only')})"
        if called in ("numpy.load", "numpy.lib.format.read_array") and said.get("allow_pickle", "False") != "False":
            yield f"{called}(allow_pickle={said['allow_pickle']})"


def test_no_module_loads_what_could_run() -> None:
    found = {
        str(path.relative_to(ROOT)): used
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if (used := set(forbidden(path.read_text())))
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import pickle", {"pickle"}),
        ("from pickle import loads as f\nf(b'')", {"pickle", "pickle.loads"}),
        ("from ray import cloudpickle", {"ray.cloudpickle"}),
        ("import torch\ntorch.load('x')", {"torch.load(weights_only=None)"}),
        ("import torch as t\nt.load('x', weights_only=flag)", {"torch.load(weights_only=flag)"}),
        ("import torch\ntorch.load('x', weights_only=True)", set()),
        ("import numpy as np\nnp.load('x', allow_pickle=True)", {"numpy.load(allow_pickle=True)"}),
        ("import numpy as np\nnp.load('x')\nmodel.eval()", set()),
        ("import yaml\nyaml.load('x', yaml.Loader)\nyaml.safe_load('x')", {"yaml.load"}),
        ("import pandas as pd\npd.read_pickle('x')", {"pandas.read_pickle"}),
        ("eval('x')", {"eval"}),
    ],
)
def test_the_scan_finds_what_it_is_for(source: str, used: set[str]) -> None:
    assert set(forbidden(source)) == used


def saved(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def rewritten(raw: bytes, change: Callable[[str, bytes], bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """A torch file with other parts."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(stream, "w", how) as new:
        for member in old.infolist():
            new.writestr(member.filename, change(member.filename, old.read(member.filename)))
    return stream.getvalue()


def many(name: str, part: bytes) -> bytes:
    """Says of the storage of 8 elements that it has 2^40."""
    assert not name.endswith("data.pkl") or b"K\x08tq" in part, pickletools.dis(part)
    return part.replace(b"K\x08tq", b"\x8a\x06" + (1 << 40).to_bytes(6, "little") + b"tq")


TENSOR = saved({"format": "warmband-torch-1", "state": torch.zeros(8)})
ATTACKS: dict[str, Callable[[Path], bytes]] = {
    "a pickle": lambda ran: pickle.dumps(Attack(ran)),
    "a pickle of protocol 0": lambda ran: pickle.dumps(Attack(ran), protocol=0),
    "torch.save": lambda ran: saved({"format": "warmband-torch-1", "state": Attack(ran)}),
    "torch.save as it was": lambda ran: _old(Attack(ran)),
    "a npy of objects": lambda ran: _npy(Attack(ran)),
    "text that is code": lambda ran: f"open({str(ran)!r}, 'w')".encode(),
    "JSON": lambda ran: b'{"learner": {}, "version": [3, 2, 0]}',
    "nothing": lambda ran: b"",
    "a part is missing": lambda ran: saved({"format": "warmband-torch-1", "step": 1}),
    "a huge tensor": lambda ran: rewritten(TENSOR, many),
    "much in little": lambda ran: rewritten(
        TENSOR, lambda name, part: bytes(1 << 26) if name.endswith("data/0") else part, zipfile.ZIP_DEFLATED
    ),
    "a UBJSON array of 2^62": lambda ran: b"{i\x01a[$d#L" + (1 << 62).to_bytes(8, "big") + b"}",
    "a UBJSON text of 2^40": lambda ran: b"{i\x01aSL" + (1 << 40).to_bytes(8, "big") + b"}",
    "UBJSON within UBJSON": lambda ran: b"{" + b"i\x01a{" * 100_000,
}

WHY = {
    "a pickle": "File is not a zip file",
    "torch.save": "tensors",
    "torch.save as it was": "File is not a zip file",
    "a part is missing": "'state'",
    "a huge tensor": "does not match expected size",
    "much in little": "compressed",
}
"""What PyTorch's trainers say, so that each attack comes as far as it is meant to."""


def _old(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def _npy(value: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([value], dtype=object), allow_pickle=True)
    return stream.getvalue()


def learn(context: TrainContext) -> None:
    model = context.prepare_model(torch.nn.Linear(2, 2))
    if context.checkpoint:
        model.load_state_dict(context.checkpoint["model"])
    for _ in context.epochs():
        context.report({"validation:loss": 1.0}, checkpoint={"model": model.state_dict()})


def trainer_of(kind: str) -> Trainer:
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    if kind == "xgboost":
        return XGBoostTrainer(
            scaling=scaling, hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 2}
        )
    made = TorchTrainer if kind == "torch" else ParameterServerTrainer
    return made(train_loop_per_worker=learn, scaling=scaling, hyperparameters={"epochs": 2})


@pytest.mark.parametrize("kind", ["xgboost", "torch", "parameter_server"])
def test_a_checkpoint_that_attacks_is_one_clear_error(kind: str, rows: dict[str, Any], tmp_path: Path) -> None:
    trainer = trainer_of(kind)
    done = trainer.fit(rows, storage_path=str(tmp_path / "models"))
    whole = Path(done.checkpoint)
    known = Manifest((File.of(whole.name, whole.read_bytes()),))
    ran, place = tmp_path / "ran", tmp_path / "models" / whole.name
    for name, made in ATTACKS.items():
        place.write_bytes(made(ran))
        with refuses(DataError, field="checkpoint", value=str(place)) as read:
            trainer.load_model(str(place))
        with trainer.gangs("attacked", trainer.checked(open_channels(rows))) as gangs, pytest.raises(TrialError) as on:
            serve_alone(gangs, going_on(trainer, place, tmp_path), 1, 60.0)
        for said in (str(read.value), str(on.value)):
            mentions(said, "checkpoint", str(place), "restore", "train")
            assert "\n" not in said, name
            assert "weights_only" not in said, name  # PyTorch recommends to load it unsafely.
        size = whole.stat().st_size  # As a job's record knows it.
        with refuses(DataError, field="checkpoint", value=str(place), remedy=(f"{size} bytes", "restore")):
            trainer.trained(str(place), manifest=known).model()
        assert not ran.exists(), name
        if kind != "xgboost" and name in WHY:
            mentions(str(read.value), WHY[name])
    place.write_bytes(whole.read_bytes())
    assert trainer.trained(str(place), manifest=known).model() is not None


@pytest.mark.parametrize("part", ["state.pt", "index.json"])
def test_a_checkpoint_in_shards_that_attacks_is_one_clear_error(tmp_path: Path, part: str) -> None:
    (tmp_path / "job").mkdir()
    uri, ran = str(tmp_path / "job" / "t-003" / "000001.pt"), tmp_path / "ran"
    whole = {"state.pt": TorchCheckpoint(step=1, state={}, random=(), updates=0, positions=()).to_bytes()}
    whole |= {"index.json": b'{"format": "warmband-shards-1", "tensors": {}}'}
    for name, made in ATTACKS.items():
        parts = {**whole, part: made(ran)}
        manifest = checkpoint.seal(uri, [checkpoint.save_part(uri, *each) for each in parts.items()])
        with refuses(DataError, field="checkpoint", value=f"{uri}/{part}", remedy="restore"):
            trainer_of("torch").trained(uri, manifest=manifest).model()
        assert not ran.exists(), name
    manifest = checkpoint.seal(uri, [checkpoint.save_part(uri, *each) for each in whole.items()])
    assert trainer_of("torch").trained(uri, manifest=manifest).model() == {}


def test_parquet_with_a_byte_changed_or_cut_is_read_or_is_one_of_our_errors(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    random = np.random.default_rng(0)
    parquet.write_table(pa.table({"x": random.normal(size=60), "y": random.integers(0, 2, 60)}), path)
    whole = path.read_bytes()
    changed = [whole[:end] for end in range(0, len(whole), 97)]
    for at in random.integers(4, len(whole), 150):
        changed.append(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    refused: list[str] = []
    for raw in changed:
        path.write_bytes(raw)
        try:
            Channel.of(str(path), target="y", name="train").read_whole()
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > len(whole) // 97
    assert max(map(len, refused)) < 1000
