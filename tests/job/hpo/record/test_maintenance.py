"""`hpo db upgrade|check`, on both databases; and what their own backups are worth: one is put back."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.store import Store, TrialRow
from tests.support.rows import job, report
from trainers.errors import WarmbandError

RUNNER = CliRunner()


def test_a_damaged_file_is_found(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as opened:
        opened.create_job(job())
        with opened.writer("bank") as writer:
            writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
            writer.report(*map(report, range(5000)))
    content = bytearray((tmp_path / "store.db").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
    (tmp_path / "store.db").write_bytes(content)
    with pytest.raises(WarmbandError) as caught:
        RUNNER.invoke(app, ["db", "check", "--store", url], catch_exceptions=False)
    assert "damaged" in str(caught.value) or "malformed" in str(caught.value)
