"""Where the store is: URLs, files, servers and their passwords, and errors that say what to give instead."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import sqlalchemy as sa

from hpo.record.store import Store
from tests.support.at_once import LIGHT, ROOT
from tests.support.postgres import PASSWORD
from tests.support.refusals import mentions
from tests.support.rows import job
from trainers.errors import ConfigurationError

USE_IT = (
    LIGHT
    + """
from hpo.record.store import JobRow, Store
from trainers.errors import WarmbandError
folder, kind = sys.argv[1:]
try:
    if kind != "ro":
        open(f"{folder}/filler", "wb").write(bytes(10_000_000))
except OSError:
    pass
try:
    Store(f"sqlite:///{folder}/store.db").create_job(JobRow(name="a", created_at=1.0))
except WarmbandError as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.parametrize(
    ("kind", "message"), [("size=64k", "(full|disk I/O error)"), ("ro", "(readonly|unable to open)")]
)
def test_a_full_disk_and_a_read_only_folder_are_refused(tmp_path, kind, message):
    """In a mount namespace of its own, which ends with the process; that takes the rights of root."""
    mounted = f'mount -t tmpfs -o {kind} tmpfs {tmp_path} && exec {sys.executable} -c "$0" {tmp_path} {kind}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, USE_IT], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    assert re.match(rf"(ConfigurationError|WarmbandError) .*{message}", done.stdout), done
    assert len(done.stdout.splitlines()) == 1
    mentions(done.stdout, f"sqlite:///{tmp_path}/store.db", "WARMBAND_STORE")


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "?password", "the file"])
def test_a_password_is_taken_from_where_libpq_looks_and_shown_nowhere(postgres, tmp_path, monkeypatch, way):
    whole = sa.make_url(postgres.new_database())
    url = f"postgresql://{whole.username}@{whole.host}:{whole.port}/{whole.database}"
    secret = tmp_path / "secret"
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, PASSWORD)
    elif way == "PGPASSFILE":
        secret.write_text(f"{whole.host}:{whole.port}:*:{whole.username}:{PASSWORD}\n")
        secret.chmod(0o600)
        monkeypatch.setenv(way, str(secret))
    elif way == "PGSERVICEFILE":
        secret.write_text(
            f"[warm]\nhost={whole.host}\nport={whole.port}\nuser={whole.username}\npassword={PASSWORD}\n"
            f"dbname={whole.database}\n"
        )
        monkeypatch.setenv(way, str(secret))
        url = "postgresql:///?service=warm"
    elif way == "?password":
        url += f"?password={PASSWORD}"
    else:
        secret.write_text(whole.render_as_string(hide_password=False))
        monkeypatch.setenv("WARMBAND_STORE_FILE", str(secret))
        url = None
    with Store(url) as store:
        store.create_job(job())
        assert PASSWORD not in store.url
        with pytest.raises(ConfigurationError) as caught:
            store.create_job(job())
        assert PASSWORD not in str(caught.value)
    with Store(whole.render_as_string(hide_password=False)) as store:
        assert [each.name for each in store.jobs()] == ["bank"]
    for variable in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "WARMBAND_STORE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    postgres.drop(whole.render_as_string(hide_password=False))
