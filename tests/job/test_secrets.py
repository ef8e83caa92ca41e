"""Planted secrets: a job uses a password, keys and a token, and none of them is found anywhere afterwards."""

from __future__ import annotations

import pytest

from hpo.record.database import open_engine, shown
from tests.support.refusals import mentions
from trainers import ConfigurationError


@pytest.mark.parametrize("given", ["me:pl@anted@host/db", "host/db?user=me&password=anted", "me:pl/anted@host/db"])
def test_a_store_s_url_is_shown_without_its_password(given: str) -> None:
    try:
        told = shown(open_engine(f"postgresql://{given}").url)
    except ConfigurationError as refused:
        told = str(refused)
        mentions(told, "@", "%40")
    assert "anted" not in told
