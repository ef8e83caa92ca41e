"""Archives of what a program wrote to `SM_MODEL_DIR`."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

from tests.support.refusals import refuses
from trainers.checkpoint import save_part, seal
from trainers.errors import CheckpointError
from trainers.script import folders
from trainers.script.kept_models import packed_model


def test_an_archive_holds_the_model_alone_with_its_links(tmp_path: Path) -> None:
    made = folders.folders_of(tmp_path / "gang", 0)
    folders.make(made)
    model = Path(made.model)
    (model / "code").mkdir()
    (model / "code" / "inference.py").write_text("print()")
    Path(made.checkpoint, "state.pt").write_bytes(b"state")
    (model / "latest.pt").symlink_to(Path(made.checkpoint, "state.pt"))
    (model / "code" / "again.py").symlink_to("inference.py")
    os.chmod(model / "code" / "inference.py", 0o755)
    uri = str(tmp_path / "job" / "job-000" / "000003")
    (tmp_path / "job").mkdir()
    part = save_part(uri, folders.part_of(0), folders.kept(made, b"{}"))
    manifest = seal(uri, [part])
    out = tmp_path / "out"
    with tarfile.open(fileobj=io.BytesIO(packed_model(uri, manifest)), mode="r:gz") as archive:
        archive.extractall(out, filter="data")
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == [
        "code",
        "code/again.py",
        "code/inference.py",
        "latest.pt",
    ]
    assert (out / "latest.pt").read_bytes() == b"state"
    assert not (out / "latest.pt").is_symlink()
    assert (out / "code" / "again.py").resolve() == (out / "code" / "inference.py").resolve()
    assert os.access(out / "code" / "inference.py", os.X_OK)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "job" / "job-000" / "000003")
    (tmp_path / "job").mkdir()
    manifest = seal(uri, [save_part(uri, folders.part_of(0), b"no archive")])
    with refuses(CheckpointError, field="worker-0.tar"):
        packed_model(uri, manifest)


def test_equal_files_make_equal_archives_whenever_they_were_written(tmp_path: Path) -> None:
    """The order in which files of checkpoints were written stays: programs find their latest by it."""
    archives = []
    for run, began in enumerate((1_700_000_000, 1_800_000_123)):
        made = folders.folders_of(tmp_path / f"gang-{run}", 0)
        folders.make(made)
        for number, name in enumerate(("b", "a", "c")):
            for folder in (made.model, made.checkpoint):
                file = Path(folder, "deep", name)
                file.parent.mkdir(exist_ok=True)
                file.write_text(name)
                os.utime(file, (began, began + (3 + run) * number))
        archives.append(folders.kept(made, b"{}"))
    assert archives[0] == archives[1]
    folders.unpack(archives[0], tmp_path / "again")
    times = {each.name: each.stat().st_mtime for each in (tmp_path / "again" / "checkpoints" / "deep").iterdir()}
    assert sorted(times, key=times.__getitem__) == ["b", "a", "c"]
