"""Text of libsvm's format, `label[:weight] [qid:n] index:value ... # comment`, parsed a block of lines at a time."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.table import LARGEST
from trainers.errors import DataError

_BLOCK_BYTES = 4 << 20
_MOST_INDEX = 2**31 - 2
_SHOWN = 40
_NEWLINE, _COLON = b"\n:"

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines that hold a row each, without comments, and their numbers in the file, from 1."""

    texts: Sequence[bytes]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.texts)

    def of(self, rank: int, step: int) -> Lines:
        """One in `step`, from the one at `rank` on."""
        return Lines(texts=self.texts[rank::step], numbers=self.numbers[rank::step])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows as arrays.

    Args:
        labels: one a row.
        weights: one a row; None where lines have none.
        qids: one a row; None where lines have none.
        values: of all entries, row by row.
        indices: the entries' own, in ascending order within a row.
        ends: how many entries each row and those before it have, with a 0 in front.
    """

    labels: NDArray[np.float32]
    weights: NDArray[np.float32] | None
    qids: NDArray[np.float64] | None
    values: NDArray[np.float32]
    indices: Ints
    ends: Ints


def lines_of(stream: Any) -> Iterator[Lines]:
    """A file's lines in blocks of some megabytes.

    Args:
        stream: pyarrow's, of bytes that are no longer compressed.
    """
    rest, before, at_start = b"", 0, True
    while piece := bytes(stream.read(_BLOCK_BYTES)):
        piece, at_start = piece.removeprefix(BOM_UTF8) if at_start else piece, False
        text, newline, behind = (rest + piece).rpartition(b"\n")
        rest = behind
        if newline:
            yield _filled(text, before)
            before += text.count(b"\n") + 1
    if rest:
        yield _filled(rest, before)


def _filled(text: bytes, before: int) -> Lines:
    if b"#" in text:
        text = re.sub(rb"#[^\n]*", b"", text)
    each = [(line, number) for number, line in enumerate(text.split(b"\n"), before + 1) if line and not line.isspace()]
    return Lines(texts=[line for line, _ in each], numbers=[number for _, number in each])


def parsed(lines: Lines) -> Rows:
    """Their rows.

    Raises:
        DataError: naming the line, and what it should be.
    """
    try:
        return _parsed(lines.texts)
    except ValueError as error:
        if len(lines) == 1:
            raise DataError(f"line {lines.numbers[0]}: {error}") from None
        for at in range(len(lines)):
            parsed(Lines(texts=[lines.texts[at]], numbers=[lines.numbers[at]]))
        # Each is right alone: they differ in what they say of a row.
        raise DataError(_unlike(lines)) from None


def _unlike(lines: Lines) -> str:
    first = _parsed(lines.texts[:1])
    for text, number in zip(lines.texts, lines.numbers, strict=True):
        row = _parsed([text])
        for what, one, other in (("weight", first.weights, row.weights), ("qid", first.qids, row.qids)):
            if (one is None) != (other is None):
                return unlike(what, number, has=other is not None)
    raise AssertionError("lines that are right alone and alike are right together")


def unlike(what: str, line: int, *, has: bool) -> str:
    """The error for a line that says more or less of its row than those before."""
    return f"line {line} has {'a' if has else 'no'} {what}, and lines before have {'none' if has else 'one'}: give all"


def _parsed(texts: Sequence[bytes]) -> Rows:
    """Raises ValueError where a line is wrong; of one line, with what is wrong."""
    pieces = _Pieces.of(texts)
    firsts, weighted, queried = pieces.firsts, pieces.weighted(), pieces.queried()
    heads = np.flatnonzero(~pieces.after_colon)
    is_index = np.ones(len(pieces.starts), bool)
    is_index[firsts] = False
    is_index[queried] = False
    keys = heads[is_index[heads]]
    if not pieces.before_colon[keys].all():
        raise ValueError(f"{pieces.shown(keys[~pieces.before_colon[keys]][0])} is no index:value")
    indices = pieces.whole(keys, "index")
    values = pieces.numbers(keys + 1, "value")
    counts = np.bincount(pieces.lines[keys], minlength=len(texts))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    indices, values = _in_order(indices, values, ends)
    return Rows(
        labels=pieces.numbers(firsts, "label", finite=True),
        weights=pieces.numbers(firsts + 1, "weight") if weighted else None,
        qids=pieces.whole(queried + 1, "qid").astype(np.float64) if len(queried) else None,
        values=values,
        indices=indices,
        ends=ends,
    )


def _in_order(indices: Ints, values: NDArray[np.float32], ends: Ints) -> tuple[Ints, NDArray[np.float32]]:
    if not len(indices):
        return indices, values
    if indices.min() < 0 or indices.max() > _MOST_INDEX:
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"index {wrong} is none; give whole numbers from 0, or from 1, to {_MOST_INDEX}")
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    place = rows * (_MOST_INDEX + 1) + indices
    steps = np.diff(place)
    if len(steps) and steps.min() <= 0:
        order = np.argsort(place, kind="stable")
        indices, values, place = indices[order], values[order], place[order]
        if (twice := np.diff(place) == 0).any():
            raise ValueError(f"index {indices[int(twice.argmax())]} stands twice in the line; give each once")
    return indices, values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pieces:
    """What stands between blanks, colons and line ends.

    Args:
        text: all lines, each with its end.
        starts: where each piece begins.
        stops: the place behind each.
        lines: in which line each is.
        firsts: the first piece of each line.
        after_colon: there is one before the piece.
        before_colon: there is one behind it.
        texts: the pieces, as an Arrow array.
    """

    text: bytes
    starts: Ints
    stops: Ints
    lines: Ints
    firsts: Ints
    after_colon: NDArray[np.bool_]
    before_colon: NDArray[np.bool_]
    texts: Any

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> _Pieces:
        import pyarrow as pa

        text = b"\n".join(lines) + b"\n"
        read = np.frombuffer(text, np.uint8)
        colons = read == _COLON
        between = (read <= ord(" ")) | colons
        edges = np.diff(between.astype(np.int8), prepend=1)
        starts, stops = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
        after_colon = (starts > 0) & colons[starts - 1]
        before_colon = colons[stops]
        of_line = np.searchsorted(np.flatnonzero(read == _NEWLINE), starts)
        firsts = np.flatnonzero(np.diff(of_line, prepend=-1) > 0)
        keys = np.flatnonzero(before_colon)
        if (
            int(colons.sum()) != len(keys)
            or int(after_colon.sum()) != len(keys)
            or (after_colon & before_colon).any()
            or after_colon[firsts].any()
            or len(firsts) != len(lines)
        ):
            raise ValueError(f"{_cut(text.rstrip())} has a colon without a number on each side")
        offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(read[~between])]
        texts = pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)
        return cls(
            text=text,
            starts=starts,
            stops=stops,
            lines=of_line,
            firsts=firsts,
            after_colon=after_colon,
            before_colon=before_colon,
            texts=texts,
        )

    def weighted(self) -> bool:
        """Whether labels have a weight behind a colon."""
        with_weight = self.before_colon[self.firsts]
        if with_weight.any() and not with_weight.all():
            raise ValueError("some lines have a weight, and others have none")
        return bool(with_weight.any())

    def queried(self) -> Ints:
        """Where `qid` stands as a key: once in each line, behind the label, or in none."""
        heads = np.flatnonzero(~self.after_colon & (self.stops - self.starts == 3) & self.before_colon)
        heads = heads[np.frombuffer(self.text, np.uint8)[self.starts[heads]] == ord("q")]
        heads = np.asarray([at for at in heads.tolist() if self._text(at) == b"qid"], np.int64)
        if not len(heads):
            return heads
        behind = self.firsts + 1 + self.before_colon[self.firsts]
        if len(heads) == len(self.firsts) and (heads == behind).all():
            return heads
        if len(self.firsts) == 1:
            raise ValueError("'qid' stands twice, or not right behind the label")
        raise ValueError("some lines have a qid, and others have none")

    def whole(self, at: Ints, what: str) -> Ints:
        """Whole numbers of some pieces."""
        import pyarrow as pa

        try:
            return np.asarray(self._chosen(at).cast(pa.int64()), np.int64)
        except pa.ArrowInvalid:
            wrong = next(
                (place for place in at.tolist() if not re.fullmatch(rb"[+-]?\d{1,18}", self._text(place))), at[0]
            )
            raise ValueError(f"{what} {self.shown(wrong)} is no whole number") from None

    def numbers(self, at: Ints, what: str, *, finite: bool = False) -> NDArray[np.float32]:
        """Numbers of some pieces; NaN is one where it need not be finite."""
        import pyarrow as pa

        try:
            read = np.asarray(self._chosen(at).cast(pa.float64()))
        except pa.ArrowInvalid:
            wrong = next((place for place in at.tolist() if not _reads_as_number(self._text(place))), at[0])
            raise ValueError(f"{what} {self.shown(wrong)} is no number") from None
        if (out := (np.abs(read) > LARGEST) | (np.isnan(read) & finite)).any():
            wrong = at[int(out.argmax())]
            raise ValueError(
                f"{what} {self.shown(wrong)} is {'missing, ' if finite else ''}infinite, or too large for float32"
            )
        return read.astype(np.float32)

    def _chosen(self, at: Ints) -> Any:
        import pyarrow as pa

        return self.texts.take(pa.array(at)).cast(pa.large_string())

    def _text(self, at: int) -> bytes:
        return self.text[self.starts[at] : self.stops[at]]

    def shown(self, at: int) -> str:
        """A piece for a message."""
        return _cut(self._text(at))


def _cut(text: bytes) -> str:
    return repr(text[:_SHOWN].decode("utf-8", "replace") + ("..." if len(text) > _SHOWN else ""))


def _reads_as_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return b"_" not in text
