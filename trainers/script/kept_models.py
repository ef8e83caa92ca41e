"""Models of programs: what a program wrote to `SM_MODEL_DIR`, unpacked below `WARMBAND_HOME` when it is asked for."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from trainers.checkpoint import Manifest, load, manifest_of
from trainers.home import home
from trainers.script.folders import part_of, unpack


def model_folder(checkpoint: str, manifest: Manifest) -> Path:
    """The folder of a trial's model; the same model is unpacked once.

    Args:
        checkpoint: URI of it.
        manifest: of it; `UNKNOWN` reads the one that is there.

    Raises:
        CheckpointError: it is cut short, changed or missing.
        StorageError: it cannot be read.
    """
    # Rank 0's part holds the model.
    data = load(checkpoint, manifest if manifest.files else manifest_of(checkpoint), part_of(0))
    place = Path(home(), "models", hashlib.sha256(data).hexdigest()[:32])
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".unpacked-", dir=place.parent))
        try:
            unpack(data, made)
            with suppress(OSError):  # Another process was quicker.
                made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place / "model"
