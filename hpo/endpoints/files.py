"""Prediction of files: batches of rows in several processes, and their predictions in the rows' order in one file."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from csv import Error as CsvError, reader as csv_rows
from dataclasses import replace
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from hpo.endpoints.scoring import PREDICTION, BoosterScorer, Scorer
from trainers.channels import LIBSVM, Channel, LibsvmFiles, is_heading
from trainers.deletion import delete_file
from trainers.errors import ConfigurationError, DataError, WarmbandError

BATCH_ROWS = 65_536
"""Rows that a process predicts at a time."""

TABLES = (".csv", ".parquet")
"""Endings of files with columns that have names."""

_AHEAD = 2
"""Batches for each process that are read before their turn."""

_SCORER: list[Scorer] = []

_Batch: TypeAlias = tuple[str, Any]
"""Rows, a DataFrame or a sparse matrix, behind the file that they are of."""


def predict_files(
    scorer: Scorer,
    files: Sequence[str | Path],
    out: str | Path,
    *,
    workers: int = 0,
    first_index: int | None = None,
    batch_rows: int = BATCH_ROWS,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Predicts all rows of files, in several processes, and writes a line a row, in the rows' order.

    Columns are found by their names, which a CSV file has in its first line; where all of that are numbers, it is a
    row, and columns are found by their places. What else files have, such as the target, is left alone. Lines of libsvm
    files have a label, which is left alone too; what they leave out is missing. `out` is there whole or not at all.

    Args:
        scorer: of the model.
        files: .csv, .parquet, or of libsvm's format (.libsvm, .svm, .svmlight), for XGBoost.
        out: a .csv or .parquet file with the column `prediction`, or `prediction_0` and so on for several outputs. Of
            a model with text labels, `prediction` is the label, and `probability_LABEL` the probability of each.
        workers: processes; 0 is one a core. No more start than there are batches, and none for a single one.
        first_index: 0 or 1, the index of the first column of the libsvm files that the model was trained on; None is
            what the files tell.
        batch_rows: that a process predicts at a time.
        on_rows: is told how many rows are done, as they are written.

    Returns:
        How many rows there were.

    Raises:
        ConfigurationError: a file or `out` has another ending, or `workers` is wrong.
        DataError: a file is missing or damaged, or a row does not fit the model: naming file and row.
        WarmbandError: a process died.
    """
    paths, target = [Path(file) for file in files], Path(out)
    for path, endings in (*((path, (*TABLES, *LIBSVM)) for path in paths), (target, TABLES)):
        if path.suffix not in endings:
            raise ConfigurationError(f"{path} ends in none of {', '.join(endings)}; give a file that does")
    if missing := [path for path in paths if not path.is_file()]:
        raise DataError(f"there is no file {missing[0]}")
    if target.resolve() in [path.resolve() for path in paths]:
        raise ConfigurationError(f"{target} is one of the files that are predicted; write to another")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ConfigurationError(f"workers is {workers!r}; give a whole number, 0 for one a core")
    sparse = _sparse(scorer, [path for path in paths if path.suffix in LIBSVM], first_index)
    done = 0
    count = workers or os.cpu_count() or 1
    with _writing(target) as write, closing(_batches(paths, sparse, batch_rows)) as batches:
        for predictions in _all_predicted(scorer, batches, count):
            write(predictions)
            done += len(predictions)
            on_rows(done)
    return done


def _all_predicted(scorer: Scorer, batches: Iterator[_Batch], count: int) -> Iterator[pd.DataFrame]:
    """Predictions of batches in their order; a single one is predicted here, as a process takes seconds to start."""
    first = list(islice(batches, 2))
    if len(first) == 1:
        yield _scored(scorer, *first[0])
    elif first:
        with _in_processes(scorer, count) as predict:
            yield from _in_order(predict, chain(first, batches), _AHEAD * count)


def _sparse(scorer: Scorer, paths: Sequence[Path], first: int | None) -> dict[Path, LibsvmFiles]:
    """Files of libsvm's format, opened, with the columns of the model."""
    if not paths:
        return {}
    if not isinstance(scorer, BoosterScorer):
        raise ConfigurationError(
            f"{paths[0]} is of libsvm's format, which models of XGBoost alone take here; give .csv or .parquet"
        )
    opened = Channel.of([str(path) for path in dict.fromkeys(paths)]).source
    assert isinstance(opened, LibsvmFiles)
    width = scorer.width
    entries = [file for file in opened.files if file.least is not None]
    least = min((file.least or 0 for file in entries), default=1)
    most = max((file.most for file in entries), default=0)
    if first is None:
        first = 0 if least == 0 else 1 if most == width else None
    if first is None:
        raise ConfigurationError(
            f"{paths[0]} does not tell whether columns are counted from 0 or from 1, and the model's job has no libsvm "
            "files that would; give .csv or .parquet"
        )
    if least < first or most - first >= width:
        raise DataError(
            f"{paths[0]}: indices go from {least} to {most}, and those of the model from {first} to {first + width - 1}"
        )
    return {
        path: replace(opened, files=(file,), first=first, width=width)
        for path, file in zip(dict.fromkeys(paths), opened.files, strict=True)
    }


def _batches(paths: Sequence[Path], sparse: Mapping[Path, LibsvmFiles], rows: int) -> Generator[_Batch]:
    """The rows of all files, some at a time, each with its file; the index of tables numbers rows."""
    for path in paths:
        if path in sparse:
            for block in sparse[path].each(0, 1):
                for begin in range(0, len(block.labels), rows):
                    yield str(path), block.features[begin : begin + rows]
            continue
        before = 0
        try:
            named = path.suffix == ".parquet" or _has_heading(path)
            for table in _tables(path, rows, named=named):
                frame = table.to_pandas().set_axis(range(before, before + table.num_rows))
                if not named or _are_places(list(frame.columns)):
                    frame = frame.set_axis(range(frame.shape[1]), axis=1)
                yield str(path), frame
                before += table.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read behind row {before}: {error}") from None


def _tables(path: Path, rows: int, *, named: bool) -> Iterator[Any]:
    if path.suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield pa.Table.from_batches([batch])
        return
    held: list[Any] = []
    with _cells(path, named=named) as reader:
        for batch in reader:
            held.append(batch)
            while sum(piece.num_rows for piece in held) >= rows:
                table = pa.Table.from_batches(held)
                yield table.slice(0, rows)
                held = table.slice(rows).to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _has_heading(path: Path) -> bool:
    """Whether a CSV file's first line is no row, as channels find it, or has the numbers that pandas gives columns."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            cells = next(csv_rows(file), [])
        except CsvError:
            return True  # pyarrow says what is wrong.
    return is_heading(cells) or _are_places(cells)


def _are_places(cells: Sequence[str]) -> bool:
    return cells == [str(place) for place in range(len(cells))]


def _cells(path: Path, *, named: bool) -> Any:
    """A reader of a CSV file's cells as text.

    Types that its first rows suggest may not fit the later ones, and the category "01" would become the number 1.
    """
    options = csv.ReadOptions(use_threads=False, autogenerate_column_names=not named)  # Errors then name the row.
    with csv.open_csv(path, options) as reader:
        text = {each.name: pa.string() for each in reader.schema if each.type != pa.binary()}
    return csv.open_csv(
        path,
        read_options=options,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=text, strings_can_be_null=True),
    )


def _in_order(
    predict: Callable[[str, Any], Future[pd.DataFrame]],
    batches: Iterator[_Batch],
    ahead: int,
) -> Iterator[pd.DataFrame]:
    """Predictions of batches in their order, of which some are under way."""
    under_way: deque[Future[pd.DataFrame]] = deque()
    try:
        for batch in batches:
            under_way.append(predict(*batch))
            if len(under_way) >= ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    except BrokenProcessPool:
        raise WarmbandError(
            "a process that predicts was killed, for want of memory perhaps; take fewer workers"
        ) from None


@contextmanager
def _in_processes(scorer: Scorer, workers: int) -> Iterator[Callable[..., Future[pd.DataFrame]]]:
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin, initargs=(scorer, threads))
    try:
        yield lambda *batch: pool.submit(_predicted, *batch)
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(scorer: Scorer, threads: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(threads)  # XGBoost reads it when it is imported, as torch did.
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    _SCORER[:] = [scorer]
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that it predicts for was killed: the pool's processes would wait for ever."""
    parent = parent_process()
    assert parent is not None, "the pool starts it"
    parent.join()
    os._exit(1)


def _predicted(file: str, rows: Any) -> pd.DataFrame:
    [scorer] = _SCORER
    return _scored(scorer, file, rows)


def _scored(scorer: Scorer, file: str, rows: Any) -> pd.DataFrame:
    try:
        found = scorer.predict(scorer.checked(rows) if isinstance(rows, pd.DataFrame) else rows)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    return scorer.named(found)


@contextmanager
def _writing(target: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Writes tables one behind the other to a file that is renamed to its name once it is whole."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    writers: list[Any] = []

    def write(predictions: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(predictions, preserve_index=False)
        if not writers:
            kind = parquet.ParquetWriter if target.suffix == ".parquet" else csv.CSVWriter
            writers.append(kind(str(draft), table.schema))
        writers[0].write_table(table)

    try:
        yield write
        if not writers:
            write(pd.DataFrame({PREDICTION: pd.Series(dtype="float32")}))
        writers[0].close()
        os.replace(draft, target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}") from None
    finally:
        delete_file(draft)
