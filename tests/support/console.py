"""The server in a process of its own, over a record of jobs that the console shows."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import psutil

from hpo.record import LedgerRow, Store
from hpo.report import JobData
from hpo.serve import Tokens
from hpo.serve.security import Codes
from tests.support.recorded import spec
from tests.support.records import made_up, write

SERVER = """
import sys
from pathlib import Path
from hpo.serve import ServeSettings, run
settings = ServeSettings(store=sys.argv[1], folder=Path(sys.argv[2]), port=int(sys.argv[3]))
run(settings, lambda line: print(line, flush=True))
"""


@dataclass
class Served:
    """A server's process, and how to get into it.

    Args:
        url: of the record.
        folder: of the server's own files.
    """

    url: str
    folder: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self._tokens = Tokens(self.folder / "tokens.json")
        self.token = self._tokens.add("person", "act")

    def start(self) -> None:
        """Starts it, on the port of last time if there was one."""
        command = [sys.executable, "-c", SERVER, self.url, str(self.folder), str(self.port)]
        own = {**os.environ, "WARMBAND_HOME": str(self.folder)}  # Else what a run leaves is in the next one's way.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().strip().rpartition(":")[2])

    def end(self) -> None:
        """Ends it."""
        assert self.process is not None
        self.process.terminate()
        self.process.communicate(timeout=60)

    def kill_all(self) -> None:
        """Kills what it has started and what that has: drivers and endpoints of a test that failed would go on."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("WARMBAND_HOME") == str(self.folder):
                    process.kill()

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> str:
        """A link by which a browser logs in, once."""
        return self.login_with(self.token)

    def login_with(self, token: str) -> str:
        """A link by which a browser logs in, once, in the place of a token."""
        found = self._tokens.find(token)
        assert found is not None
        return f"{self.base}/login?code={Codes(self._tokens, self.folder / 'login-codes').begin(found)}"


def put(store: Store, **options: object) -> JobData:
    """A job of `made_up`'s options in the record, with ids and a description as a driver writes them."""
    data = made_up(**options)
    kept = [field.name for field in fields(LedgerRow) if field.name != "id"]
    ledger = tuple(LedgerRow(**{name: getattr(row, name) for name in kept}) for row in data.ledger)
    data = replace(data, job=replace(data.job, spec={**spec(), **data.job.spec}), ledger=ledger)
    write(store, data)
    return data
