"""One Ray cluster and one database server for the whole session, and a home of its own for what tests keep."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given, settings, strategies as st

import trainers  # noqa: F401  # Before any library with OpenMP: threads of two test processes would spin on two cores.
from tests.support.properties import QUICK

if TYPE_CHECKING:  # Their servers are for few tests, and each test process imports this.
    from tests.support.google_storage import GoogleStorage
    from tests.support.postgres import Postgres

pytest_plugins = ["tests.support.tiers"]

# How long an example takes says more about the machine than about the code; and one tree gives one answer.
# `make test` tries few examples of each property (tests/support/properties.py); `searching` looks for new ones.
settings.register_profile("searching", deadline=None)
settings.register_profile("thorough", deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=QUICK)
settings.load_profile("thorough")

os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
# Else Ray's workers give way to whatever else runs on the machine, and get next to nothing of a busy one.
os.environ.setdefault("RAY_worker_niceness", "0")
# Workers are started when they are needed, not one a CPU at the start: 16 take 5 to 11 s of a core.
os.environ.setdefault("RAY_enable_worker_prestart", "0")
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
# Else the agent of each node looks at every process of the machine, every few seconds, for nobody.
os.environ.setdefault("REPORTER_UPDATE_INTERVAL_MS", "60000")
# The keys of the `s3` fixture. Here, since Ray's workers have the environment that Ray was started in.
os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_EC2_METADATA_DISABLED="true")


UNSEEN = {
    "RAY_enable_metrics_collection": "false",
    "RAY_task_events_report_interval_ms": "0",
    # Its monitor of log files looks for new ones once an hour, not ten times a second.
    "RAY_LOG_MONITOR_MANY_FILES_THRESHOLD": "0",
    "LOG_NAME_UPDATE_INTERVAL_S": "3600",
}
"""What of the shared Ray nobody looks at, and costs processor time as long as the session lasts."""


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Ray with more logical CPUs than this machine has cores: four gangs of three fit, and a little more."""
    import ray

    from trainers.cluster.session import started

    with pytest.MonkeyPatch.context() as patch:
        for name, value in UNSEEN.items():
            patch.setenv(name, value)
        started(  # Again, where the machine is busy.
            partial(
                ray.init,
                address="local",
                num_cpus=16,
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
            ),
            print,
            lambda: False,
        )
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """A URI of a bucket on an S3-compatible server of the tests' own, `moto`.

    Its keys are in the environment, as everybody's have to be.
    """
    from tests.support.moto_s3 import moto_s3  # Those who need no S3 do not wait for boto3.

    with moto_s3() as address:
        options = f"endpoint_override={quote(address, safe='')}&region=us-east-1&allow_bucket_creation=true"
        yield f"s3://warmband/jobs?{options}"


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleStorage]:
    """A server of the tests' own that speaks as Google's storage does, with a bucket "warmband"."""
    from tests.support.google_storage import google_storage

    with google_storage("warmband", tmp_path_factory.mktemp("google")) as storage:
        yield storage


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of the tests' own, at work like any; what it writes need not outlive the machine."""
    from tests.support.postgres import Postgres

    with Postgres("fsync=off") as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of the record run on another database."""
    parser.addoption("--database", choices=("sqlite", "postgresql"), default="sqlite", help="of the fixture `database`")


@pytest.hookimpl(tryfirst=True)  # Before pytest selects by marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `--database` is for."""
    for item in items:
        if "database" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a table: on SQLite, or on PostgreSQL by `--database=postgresql`."""
    if request.config.getoption("--database") == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.new_database()
    yield url
    server.drop(url)


@pytest.fixture(scope="session", autouse=True)
def unicode_tables() -> None:
    """Have Hypothesis make its tables of Unicode: else the first test that draws text would pay for them."""
    given(st.text())(settings(max_examples=1, database=None)(lambda text: None))()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps what a test writes out of the user's home."""
    folder = tmp_path / "home"
    monkeypatch.setenv("WARMBAND_HOME", str(folder))
    monkeypatch.delenv("WARMBAND_STORE", raising=False)
    return folder
