"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs import (  # noqa: F401  # Fixtures.
    LONG,
    RUN_PAGES,
    Ground,
    fresh,
    ground,
    one_thread,  # Of every test.
    run_page,
)
from tests.support.snippets import ROOT


@pytest.mark.parametrize("page", sorted({*RUN_PAGES} - LONG))
def test_the_blocks_of_a_page_run(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, fresh, monkeypatch)


def test_the_site_has_no_link_and_no_name_that_leads_nowhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "-f", "docs/site/mkdocs.yml", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    assert 'id="hpo.HyperparameterTuner.fit"' in (tmp_path / "reference" / "tuner.html").read_text(encoding="utf-8")
