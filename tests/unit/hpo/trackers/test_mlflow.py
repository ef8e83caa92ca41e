"""What MLflow's own client finds of a job in a database and on a server, and what happens where there is none."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, strategies as st
from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, path_not_unique, validate_param_and_metric_name

from hpo.trackers import MLflow
from hpo.trackers.mlflow import Keys
from tests.support.followed import (
    follow,
)
from tests.support.refusals import mentions
from tests.support.simulated import METRIC


def test_a_server_that_is_not_there_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    _, _, said = follow(MLflow(f"http://me:secret@127.0.0.1:{port}"))
    assert len(said) == 1
    mentions(said[0], "MLflow")
    assert "secret" not in said[0]


def test_what_it_is_called_shows_no_password() -> None:
    assert repr(MLflow("https://me:secret@host:5000/x")) == (
        "MLflow(tracking_uri='https://***@host:5000/x', experiment='warmband')"
    )


LONG = st.sampled_from(["a" * 249, "a" * 250, "a" * 251, "b/" * 200])


@given(st.lists(st.text("ab./ _%é\n", max_size=5) | st.text(max_size=5) | LONG, unique=True, max_size=8))
def test_any_names_become_keys_that_mlflow_takes_each_its_own(names: list[str]) -> None:
    keys = Keys()
    found = [keys.key(name) for name in names]
    assert len(set(found)) == len(names)
    assert [keys.key(name) for name in names] == found
    for key in found:
        assert validate_param_and_metric_name(key), key
        assert not path_not_unique(key), key
        assert 0 < len(key) <= MAX_ENTITY_KEY_LENGTH


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (METRIC, METRIC),
        ("train/loss", "train/loss"),
        ("/a//b/", "a/b"),
        ("../../etc", "_/_/etc"),
        (".", "_"),
        ("", "_"),
        ("50%", "50_"),
    ],
)
def test_names_stay_readable(name: str, key: str) -> None:
    assert Keys().key(name) == key
