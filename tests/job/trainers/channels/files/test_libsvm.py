"""Files of libsvm's format: what scikit-learn reads of them, dealt out, with errors that name file and line."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tests.support.refusals import mentions, refuses_each
from tests.support.trainers.channels.files.libsvm import same
from trainers import Channel, DataError
from trainers.channels.files import svmlight

RANDOM = np.random.default_rng(3)


def test_many_random_rows_are_what_scikit_learn_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svmlight, "_BLOCK_BYTES", 999)
    matrix = sp.random(500, 300, 0.05, "csr", random_state=RANDOM)
    dump_svmlight_file(matrix, RANDOM.normal(size=500), str(tmp_path / "a.svm"), comment="of a test", zero_based=False)
    expected, labels = load_svmlight_file(str(tmp_path / "a.svm"))
    same(Channel.of(tmp_path / "a.svm").read_whole(), expected, labels.astype(np.float32))


def test_a_wrong_line_is_named_with_its_file(tmp_path: Path) -> None:
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("1 3", ("'3'",)),
        ("a 3:1", ("label", "'a'")),
        ("1,2 3:1", ("label", "1,2")),
        ("1 a:1", ("index", "'a'")),
        ("1 1.5:1", ("index", "1.5")),
        ("1 -1:1", ("index", -1, 0, 2147483646)),
        ("1 3000000000:1", ("index", 3000000000, 2147483646)),
        ("1 2:x", ("value", "'x'")),
        ("1 2:1_0", ("value", "1_0")),
        ("1 2:inf", ("value", "inf", "float32")),
        ("1 2:1e39", ("value", "1e39", "float32")),
        ("nan 2:1", ("label", "nan", "float32")),
        ("1 2:1 2:1", ("index", 2)),
        ("1 2: 1", ("1 2: 1", "colon")),
        ("1 :1", ("'1 :1'", "colon")),
        (":1 1:1", ("':1 1:1'", "colon")),
        ("1 1:2:3", ("1 1:2:3", "colon")),
        ("1 1::3", ("1 1::3", "colon")),
        (":", ("':'", "colon")),
        ("1:2 1:1", ("weight",)),
        ("1 qid:3 1:1", ("qid",)),
        ("1 1:1 qid:3", ("qid", "label")),
        ("1 qid:3 qid:4", ("qid",)),
        ("1 qid:a", ("qid", "'a'")),
        ("1 \xff:2", ("index", "'\ufffd'")),
    ]

    def opened(folder: Path, line: str) -> Channel:
        folder.mkdir()
        for number in range(10):
            wrong = [line] if number == 9 else []
            text = "\n".join(["1 1:1", *wrong, "-1 2:2 3:4"])
            (folder / f"{number}.libsvm").write_bytes(text.encode("latin-1"))
        try:
            return Channel.of(f"{folder}/*.libsvm", name="train")
        except DataError as error:
            mentions(str(error), "index:value")
            # Each message ends with the form of a line, which names label, weight, qid, index and value, too.
            raise DataError(re.sub(r"label\[[^']*", "", str(error))) from None

    refuses_each(
        [
            (partial(opened, folder, line), ("'train'", f"{folder}/9.libsvm", "line 2", *names))
            for folder, (line, names) in ((tmp_path / f"case{at}", case) for at, case in enumerate(cases))
        ],
        DataError,
    )
