"""`Predictor`: asks an endpoint for predictions."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trainers.errors import ConfigurationError, DataError, WarmbandError

SECONDS = 60.0
"""That an answer may take."""


class Predictor:
    """Asks an endpoint for predictions, from any process that reaches its address.

    Args:
        endpoint_name: the endpoint's.
        url: its address, such as "http://127.0.0.1:8000/churn".
        end: ends the endpoint; None where that is done elsewhere.
    """

    def __init__(self, endpoint_name: str, url: str, end: Callable[[], None] | None = None) -> None:
        self.endpoint_name = endpoint_name
        self.url = url
        self._end = end

    def __repr__(self) -> str:
        return f"Predictor({self.endpoint_name!r}, {self.url!r})"

    def predict(self, data: Any, timeout: float = SECONDS) -> NDArray[Any]:
        """Predictions of rows.

        Args:
            data: a DataFrame, whose columns are found by their names; a NumPy array or lists, a row an example; or
                CSV as text, without a heading.
            timeout: seconds that the answer may take.

        Returns:
            One a row, of shape (rows,) or (rows, outputs); of a model with text labels, a label a row.

        Raises:
            DataError: the rows do not fit the model.
            WarmbandError: the endpoint does not answer, or not in time.
        """
        if isinstance(data, str):
            answer = self._ask("invocations", data.encode(), "text/csv", timeout)
        else:
            answer = self._ask("invocations", _as_json(data), "application/json", timeout)
        return np.asarray(answer["predictions"])

    def ping(self, timeout: float = SECONDS) -> dict[str, Any]:
        """What the endpoint says of itself: its job, its trial, and the most requests that it predicted together.

        Raises:
            WarmbandError: it does not answer, or not in time.
        """
        return self._ask("ping", None, "", timeout)

    def wait(self, timeout: float = 300.0) -> None:
        """Waits until the endpoint answers.

        Raises:
            WarmbandError: it does not within `timeout` seconds.
        """
        until = time.monotonic() + timeout
        while True:
            try:
                self.ping(5.0)
                return
            except WarmbandError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.2)

    def delete_endpoint(self) -> None:
        """Ends the endpoint.

        Raises:
            ConfigurationError: it is another process's to end.
        """
        if self._end is None:
            raise ConfigurationError(
                f"endpoint {self.endpoint_name!r} was not deployed through this Predictor; run `hpo undeploy "
                f"{self.endpoint_name}` where its cluster is reached"
            )
        self._end()

    def _ask(self, what: str, body: bytes | None, kind: str, timeout: float) -> dict[str, Any]:
        headers = {"Content-Type": kind} if body is not None else {}
        request = urllib.request.Request(f"{self.url}/{what}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            message = error.read().decode(errors="replace")
            try:
                message = json.loads(message)["error"]
            except (ValueError, KeyError, TypeError):
                message = message.strip()[:500] or error.reason
            if error.code == 400:
                raise DataError(f"endpoint {self.endpoint_name}: {message}") from None
            raise WarmbandError(f"endpoint {self.endpoint_name} answered {error.code}: {message}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise WarmbandError(
                f"endpoint {self.endpoint_name} does not answer at {self.url} within {timeout:g} s: {reason}"
            ) from None


def _as_json(data: Any) -> bytes:
    if isinstance(data, pd.DataFrame):
        text = data.to_json(orient="records", double_precision=15, date_format="iso")
        return f'{{"instances": {text}}}'.encode()
    rows = np.asarray(data)
    if rows.ndim != 2:
        raise DataError(f"data has shape {rows.shape}; give two dimensions, a row an example")
    text = pd.DataFrame(rows).to_json(orient="values", double_precision=15)  # What is missing is null.
    return f'{{"instances": {text}}}'.encode()
