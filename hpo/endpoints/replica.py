"""A replica of an endpoint: checks the rows of each request, and predicts those of several together."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from hpo.endpoints.scoring import PREDICTION, PROBABILITY, Scorer
from trainers.errors import DataError

MOST_BYTES = 16 << 20
"""Of a request's body."""


class Replica:
    """What Ray Serve runs on each replica, with `together` as its `serve.batch`.

    Args:
        scorer: of the model.
        about: what `GET /ping` tells: endpoint, job, trial.
    """

    def __init__(self, scorer: Scorer, about: dict[str, Any]) -> None:
        self._scorer = scorer
        self._about = about
        self._largest = 0

    async def together(self, rows: Any) -> Any:
        """Predictions of a request's rows, which wait a moment for those of others."""
        [found] = await self.predicted([rows])
        return found

    async def predicted(self, requests: Sequence[Any]) -> list[NDArray[Any]]:
        """Predictions of each request, of all in one call of the model."""
        self._largest = max(self._largest, len(requests))
        ends = np.cumsum([len(rows) for rows in requests])
        rows = pd.concat(requests, ignore_index=True)
        found = await asyncio.to_thread(self._scorer.predict, rows)
        return np.split(found, ends[:-1])

    async def __call__(self, request: Request) -> Response:
        """Answers `GET .../ping` and `POST .../invocations`, as SageMaker's containers do."""
        path = request.url.path.rpartition("/")[2]
        if (request.method, path) == ("GET", "ping"):
            return JSONResponse({**self._about, "pid": os.getpid(), "largest_batch": self._largest})
        if (request.method, path) != ("POST", "invocations"):
            return _refused(404, f"{request.method} .../{path} is nothing; there are GET ping and POST invocations")
        try:
            rows = self._scorer.checked(await _rows(request))
            found = await self.together(rows) if len(rows) else np.zeros(0)
        except DataError as error:
            return _refused(400, str(error))
        except (
            RuntimeError,
            ValueError,
        ) as error:  # Rows that the model itself refuses: a network's, of another width.
            return _refused(400, f"the model refuses these rows: {error}")
        if self._scorer.classes:
            return _labelled(self._scorer.named(found), csv="text/csv" in request.headers.get("accept", ""))
        if "text/csv" in request.headers.get("accept", ""):
            lines = found if found.ndim > 1 else found[:, None]
            return PlainTextResponse("".join(",".join(map(str, line)) + "\n" for line in lines.tolist()))
        return Response(json.dumps({"predictions": found.tolist()}), media_type="application/json")


def _labelled(found: pd.DataFrame, *, csv: bool) -> Response:
    """Labels of rows, and the probability of each class where the model gives it."""
    if csv:
        return PlainTextResponse(found.to_csv(index=False, header=False))
    answer: dict[str, Any] = {"predictions": found[PREDICTION].tolist()}
    if len(rest := [name for name in found.columns if name != PREDICTION]):
        probabilities = found[rest].set_axis([name.removeprefix(PROBABILITY) for name in rest], axis=1)
        answer["probabilities"] = probabilities.to_dict(orient="records")
    return Response(json.dumps(answer), media_type="application/json")


async def _rows(request: Request) -> pd.DataFrame:
    """The rows of a request: CSV without a heading, or JSON with `instances`, rows as lists or by column.

    Raises:
        DataError: it has none.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise DataError(f"the request has more than {MOST_BYTES >> 20} MiB; send fewer rows at a time")
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind == "text/csv":
        try:
            return pd.read_csv(io.BytesIO(body), header=None, dtype=str)  # "01" may be a category.
        except (ValueError, UnicodeDecodeError) as error:
            raise DataError(f"the request is no CSV: {error}") from None
    if kind != "application/json":
        raise DataError(f"Content-Type is {kind!r}; give text/csv or application/json")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the request is no JSON: {error}") from None
    instances = given.get("instances") if isinstance(given, dict) else given
    if not isinstance(instances, list) or not instances:
        raise DataError('the request has no rows; give {"instances": [[1.0, 2.0], ...]}, or rows as objects by column')
    kinds = {type(row) for row in instances}
    if kinds not in ({list}, {dict}) or (kinds == {list} and len({len(row) for row in instances}) > 1):
        raise DataError("instances are no rows of one form; give lists of the same length, or objects")
    return pd.DataFrame(instances)


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
