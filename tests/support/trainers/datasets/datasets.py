"""A made-up archive of the bank marketing data set."""

from __future__ import annotations

import io
import os
import zipfile

import pytest

from trainers.datasets import find

CSV = "bank-additional-full.csv"
ZIP = "bank-additional.zip"

real_data = pytest.mark.skipif(
    find("bank-marketing", os.environ.get("WARMBAND_DATA")) is None,
    reason="WARMBAND_DATA does not name a directory with the UCI bank marketing data",
)


CONTENT = b"what the bank published\n" * 1000


def archive(content: bytes = CONTENT) -> tuple[bytes, bytes]:
    """An archive as published, and the archive around it."""
    inner = zipped(f"bank-additional/{CSV}", content)
    return inner, zipped(ZIP, inner)


def zipped(name: str, content: bytes) -> bytes:
    """A zip file with one member, the same bytes each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()
