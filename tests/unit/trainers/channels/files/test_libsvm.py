"""Files of libsvm's format: what scikit-learn reads of them, dealt out, with errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from sklearn.datasets import load_svmlight_file, load_svmlight_files

from hpo.jobs.files.inputs import open_inputs, record_inputs
from tests.support.refusals import refuses, refuses_each
from tests.support.trainers.channels.files.libsvm import same
from trainers import Channel, ConfigurationError, DataError
from trainers.channels import interleave, open_channels
from trainers.channels.files import svmlight
from trainers.channels.files.svmlight import Rows, lines_of, parsed

RANDOM = np.random.default_rng(3)
X = sp.random(23, 9, 0.3, "csr", np.float64, random_state=RANDOM)
X.data[::4] = 0.0
Y = np.arange(23) - 11
Q = np.repeat(np.arange(8), 3)[:23]


def dump(path: Path, part: slice = slice(None), **how: Any) -> Path:
    lines = [" ".join([f"{Y[row]}", *entries_of(row, **how)]) for row in range(23)[part]]
    path.write_text("\n".join(lines) + "\n")
    return path


def entries_of(row: int, one_based: bool = True, qid: bool = False) -> list[str]:
    entries = range(X.indptr[row], X.indptr[row + 1])
    said = [f"qid:{Q[row]}"] if qid else []
    return said + [f"{X.indices[at] + one_based}:{float(X.data[at])!r}" for at in entries]


def parse(text: bytes) -> list[Rows]:
    return [parsed(lines) for lines in lines_of(io.BytesIO(text))]


@pytest.mark.parametrize("one_based", [True, False])
def test_it_is_what_scikit_learn_reads(tmp_path: Path, one_based: bool) -> None:
    path = dump(tmp_path / "a.libsvm", one_based=one_based)
    matrix, labels = load_svmlight_file(str(path))
    same(Channel.of(path).read_whole(), matrix, labels)
    assert Channel.of(path).read_whole().features.nnz == X.nnz, "with the explicit zeros"


@pytest.mark.parametrize("qid", [False, True])
@pytest.mark.parametrize("parts", [[slice(0, 23)], [slice(0, 9), slice(9, 18), slice(18, 23)]])
def test_shards_hold_each_row_once(tmp_path: Path, parts: list[slice], qid: bool) -> None:
    for number, part in enumerate(parts):
        dump(tmp_path / f"{number}.svmlight", part, qid=qid)
    channel = Channel.of(tmp_path)
    assert channel.describe()["rows"] == 23
    assert list(channel.said) == (["qid"] if qid else [])
    whole = channel.read_whole()
    same(whole, X, Y)
    shards = [channel.read(rank, 3) for rank in range(3)]
    assert sorted(np.concatenate([shard.labels for shard in shards])) == sorted(Y)
    if qid:
        assert shards[1].labels.tolist() == [y for y, q in zip(Y, Q, strict=True) if q % 3 == 1]
    if qid or len(parts) == 1:
        same(interleave(shards), X, Y)
    assert [len(shard.labels) for shard in shards] if qid else max(len(shard.labels) for shard in shards) <= 9


def test_weights_stand_behind_labels(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text(
        "# made by hand\n1:0.5 1:2 3:4 # the first\n\n-1:2\t2:1e-3\r\n+1:0 qid\n".replace(" qid", "")
    )
    table = Channel.of(tmp_path / "a.svm").read_whole()
    same(
        table, sp.csr_matrix((np.array([2, 4, 1e-3]), np.array([0, 2, 1]), np.array([0, 2, 3, 3])), (3, 3)), [1, -1, 1]
    )
    assert table.said["weight"].tolist() == [0.5, 2, 0]


def test_columns_and_the_first_index_are_agreed_on_over_all_channels(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1 2:2\n0 2:3\n")
    (tmp_path / "b.svm").write_text("1 1:1 5:2\n")
    (tmp_path / "c.svm").write_text("1 0:1\n")
    alone = Channel.of(tmp_path / "a.svm", name="a")
    assert alone.read_whole().features.toarray().tolist() == [[1, 2], [0, 3]]
    opened = open_channels({"train": alone, "validation": str(tmp_path / "b.svm")})
    assert [channel.read_whole().features.shape for channel in opened.values()] == [(2, 5), (1, 5)]
    assert opened["train"].read_whole().features.toarray()[0].tolist() == [1, 2, 0, 0, 0]
    opened["validation"].check_like(opened["train"])
    opened = open_channels({"train": alone, "validation": tmp_path / "b.svm", "test": tmp_path / "c.svm"})
    by_it = load_svmlight_files([str(tmp_path / f"{name}.svm") for name in "abc"])
    for channel, matrix in zip(opened.values(), by_it[::2], strict=True):
        np.testing.assert_array_equal(channel.read_whole().features.toarray(), matrix.toarray())
    recorded = record_inputs(opened, str(tmp_path / "job"))
    again = open_inputs(recorded)
    assert {name: channel.read_whole().features.shape for name, channel in again.items()} == {
        "train": (2, 6),
        "validation": (1, 6),
        "test": (1, 6),
    }
    wide = open_channels({"train": (sp.csr_matrix(np.ones((2, 7))), [0, 1]), "test": tmp_path / "b.svm"})
    assert wide["test"].read_whole().features.shape == (1, 7)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_files_may_be_compressed(tmp_path: Path, ending: str, pack: Any) -> None:
    plain = dump(tmp_path / "a.svm")
    packed = tmp_path / f"b.svm{ending}"
    packed.write_bytes(pack(plain.read_bytes()))
    same(Channel.of(packed).read_whole(), X, Y)
    packed.write_bytes(pack(plain.read_bytes())[:-20])
    with refuses(DataError, field=f"b.svm{ending}", value="damaged"):
        Channel.of(packed)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    cases: list[tuple[list[str], tuple[object, ...]]] = [
        ([""], ("0.svm", "empty")),
        (["# nothing\n\n"], ("0.svm", "rows")),
        (["1\n0\n"], ("0.svm", "entry", "feature")),
        (["1 1:1\n", "1:2 1:1\n"], ("1.svm", "weight", "0.svm")),
        (["1:-1 1:1\n"], ("0.svm", "line 1", "weight", -1, 0)),
        (["1 qid:1 1:1\n1 qid:2 1:1\n0 qid:1 2:2\n"], ("0.svm", "line 3", "query 1")),
        (["1 qid:1 1:1\n1 qid:2 1:1\n", "0 qid:2 2:2\n"], ("1.svm", "line 1", "query 2", "file")),
    ]

    def look(folder: Path, texts: list[str]) -> object:
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{number}.svm").write_text(text)
        return Channel.of(f"{folder}/*.svm").look(1)

    refuses_each(
        [(partial(look, tmp_path / f"case{at}", texts), names) for at, (texts, names) in enumerate(cases)], DataError
    )


@pytest.mark.parametrize("options", [{"target": 0}, {"header": True}, {"delimiter": ";"}, {"weight": "w"}, {"qid": 1}])
def test_what_lines_say_themselves_is_no_option(tmp_path: Path, options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    with refuses(ConfigurationError, field=name, value=value, remedy="libsvm"):
        Channel.of(dump(tmp_path / "a.svm"), **options)


def test_a_block_that_is_cut_anywhere_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"# c\n1 qid:1 1:1 2:2 # d\n\n\n2 qid:1 1:1\r\n3 qid:2 7:1e5\n4 qid:2"
    [whole] = parse(text + b"\n")
    for size in range(1, len(text)):
        monkeypatch.setattr(svmlight, "_BLOCK_BYTES", size)
        blocks = [block for block in parse(text) if len(block.labels)]
        for part in ("labels", "values", "indices", "qids"):
            np.testing.assert_array_equal(np.concatenate([getattr(of, part) for of in blocks]), getattr(whole, part))
        numbers = [number for lines in lines_of(io.BytesIO(text)) for number in lines.numbers]
        assert numbers == [2, 5, 6, 7]


@given(
    st.lists(
        st.tuples(
            st.floats(-(2.0**99), 2.0**99, width=32),
            st.dictionaries(st.integers(0, 2**31 - 2), st.floats(allow_infinity=False, width=32), max_size=4),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_is_what_is_read(rows: list[tuple[float, dict[int, float]]]) -> None:
    text = "\n".join(" ".join([repr(label), *(f"{at}:{value!r}" for at, value in row.items())]) for label, row in rows)
    [found] = parse(text.encode() + b"\n")
    assert found.labels.tolist() == [label for label, _ in rows]
    assert found.weights is None
    assert found.qids is None
    for at, (_, row) in enumerate(rows):
        mine = slice(found.ends[at], found.ends[at + 1])
        assert found.indices[mine].tolist() == sorted(row)
        np.testing.assert_array_equal(found.values[mine], np.array([row[i] for i in sorted(row)], np.float32))


@given(
    st.lists(st.sampled_from([b"1", b":", b" ", b"\n", b"qid", b"#", b"-", b".", b"2:3", b"\r", b"\xff"]), max_size=14)
)
def test_nonsense_is_rows_or_an_error(pieces: list[bytes]) -> None:
    """Never another exception, and what is read has as many values as indices."""
    try:
        blocks = parse(b"".join(pieces))
    except DataError:
        return
    for block in blocks:
        assert len(block.values) == len(block.indices) == block.ends[-1]
        assert len(block.ends) == len(block.labels) + 1


def test_a_block_without_a_row_of_a_rank_s_takes_no_weights_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(svmlight, "_BLOCK_BYTES", 9)
    (tmp_path / "a.svm").write_text("".join(f"{row}:2 1:1\n" for row in range(10)))
    shards = [Channel.of(tmp_path / "a.svm").read(rank, 4) for rank in range(4)]
    assert [shard.labels.tolist() for shard in shards] == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    assert all((shard.said["weight"] == 2).all() for shard in shards)


def test_a_mark_of_utf_8_in_front_and_line_ends_of_windows_are_no_part_of_rows(tmp_path: Path) -> None:
    path = dump(tmp_path / "rows.svm")
    plain = Channel.of(path).read_whole()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    same(Channel.of(path).read_whole(), plain.features, plain.labels)
