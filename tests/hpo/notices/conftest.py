"""Receivers of notices, and pauses between attempts that are short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpo.notices import attempts
from tests.support.receivers import Hook, Mailbox, hook, mailbox


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between here and this machine, and attempts follow one another."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0.01)


@pytest.fixture
def receiver() -> Iterator[Hook]:
    """An HTTP server."""
    with hook() as made:
        yield made


@pytest.fixture
def box() -> Iterator[Mailbox]:
    """An SMTP server without encryption."""
    with mailbox() as made:
        yield made
