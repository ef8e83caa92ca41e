"""Categories of columns in files, found before anything is trained."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from trainers.channels.files.files import Files
from trainers.channels.files.shares import File
from trainers.channels.rows import Categories, classes_of, distinct
from trainers.errors import DataError


def with_categories_found(files: Files, *, text_labels: bool) -> Files:
    """The files with the categories, and the classes of text labels, that all of them together have.

    Of Parquet files only these columns are read. A dictionary's values count whether or not a row has them.

    Args:
        files: whose `categorical` names columns.
        text_labels: whether labels are text.

    Raises:
        DataError: a file cannot be read, or a column's values are no categories.
    """
    target = files.roles.target
    if not files.categorical and (not text_labels or target is None):
        return files
    if text_labels:
        files = files.classed(Categories(values=()))  # Cells are then read as text.
    features = files.roles.features(files.width)
    places = [*(features[at] for at in files.categorical), *([target] if text_labels and target is not None else [])]
    in_files = [place for place in places if place < files.own_width]

    def in_one(file: File) -> dict[int, set[str | int]]:
        found: dict[int, set[str | int]] = {place: set() for place in places}
        for block in files.columns_alone(file, in_files) if in_files else ():
            for at, place in enumerate(in_files):
                try:
                    found[place] |= distinct(block.column(at))
                except DataError as error:
                    raise _about(files, place, f"{files.scheme}{file.path}: ", error) from None
        for place in places:
            if place >= files.own_width and isinstance(value := file.values[place - files.own_width], str):
                found[place].add(value)
        return found

    with ThreadPoolExecutor(min(len(files.files), os.cpu_count() or 1)) as pool:
        each = list(pool.map(in_one, files.files))
    if text_labels and target is not None:
        files = files.classed(classes_of(set().union(*(found[target] for found in each))))
    coding = {}
    for at, place in zip(files.categorical, places, strict=False):
        typed = files.kind == "parquet" and place < files.own_width
        try:
            coding[at] = Categories.of(set().union(*(found[place] for found in each)), typed=typed)
        except DataError as error:
            raise _about(files, place, "", error) from None
    return replace(files, coding=coding)


def _about(files: Files, place: int, where: str, error: DataError) -> DataError:
    column = repr(files.columns[place]) if files.columns else str(place)
    return DataError(f"{where}column {column} is categorical: {error}")
