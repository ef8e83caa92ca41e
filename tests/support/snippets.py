"""Code of the documents: each fenced block of a page, and a session in which those of one page run in their order."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    *(page for group in ("start", "guides", "background") for page in sorted((ROOT / "docs" / group).glob("*.md"))),
    *(ROOT / "docs" / "reference" / f"{name}.md" for name in ("cli", "failures", "migrating-from-sagemaker")),
    ROOT / "docs" / "reference" / "xgboost-objectives.md",
]

SHELL = ("sh", "bash", "console")
RUN = ("python", *SHELL)
SHOWN = ("text", "yaml", "sql", "json", "toml", "dockerfile")
"""Languages of blocks that nothing runs: output, files, and what a database's own client takes."""

REASONS = (
    "needs a GPU",
    "needs a container engine",
    "needs a cluster, a server or a cloud account",
    "installs packages",
    "downloads data",
    "takes minutes",
    "shows an error on purpose",
    "follows a block that is not run",
    "is a reference, whose commands are parsed",
)
"""All that may stand in `<!-- not run: ... -->`."""

FENCE = re.compile(
    r"(?P<comment>(?:^ *<!--[^\n]*-->\n)?)^(?P<indent> *)```(?P<language>\w*)(?P<more>[^\n]*)\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN = re.compile(r"<!-- not run: (.*?) -->")
TITLE = re.compile(r'title="([^"]+)"')
SECONDS = 600.0
"""How long one block of a shell may take; a deadline for what hangs."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page.

    Args:
        page: relative to the repository.
        line: of the page, where it begins.
        language: "python", "console" and so on; empty if the page says none.
        title: the file that it is saved as, if it has one.
        label: of a comment `<!-- shown: NAME -->` or `<!-- port: NAME -->` above it.
        reason: why it is not run; None where it is.
        code: its text.
    """

    page: str
    line: int
    language: str
    title: str | None
    label: str | None
    reason: str | None
    code: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> str:
        """The commands for a shell; of a console block, the lines behind `$ ` and their continuation lines."""
        if self.language != "console":
            return self.code
        lines, goes_on = [], False
        for line in self.code.splitlines():
            if line.startswith("$ ") or goes_on:
                lines.append(line.removeprefix("$ "))
                goes_on = line.endswith("\\")
        return "\n".join(lines) + "\n"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, match.start("code")),
            language=match["language"],
            title=_first(TITLE, match["more"]),
            label=_first(re.compile(r"<!-- (?:port|shown): (\w+) -->"), match["comment"]),
            reason=_first(NOT_RUN, match["comment"]),
            code=re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE),
        )
        for match in FENCE.finditer(text)
    ]


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found and found[1]


def in_hand(code: str) -> str:
    """Code or a job file whose workers are in this process."""
    if "xgboost_ray" in code:  # It trains in Ray's actors only; pages show how such a trainer is made.
        return code
    code = re.sub(r"num_workers=\d+\)", 'num_workers=0, resources_per_worker={"CPU": 1})', code)
    return re.sub(r"^(  num_workers:) \d+", r"\1 0", code, flags=re.MULTILINE)


class Session:
    """A folder, Python's names and a shell, which the blocks of one page share.

    Args:
        folder: where the page's files are, and its commands run.
        environment: of the shell.
        names: that Python code finds beside Python's own.
    """

    def __init__(self, folder: Path, environment: dict[str, str], names: dict[str, Any]) -> None:
        self._folder = folder
        self._module = ModuleType("shown")
        self.names = vars(self._module)
        self.names.update(names)
        self._environment = environment
        self._shell: Shell | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shell is not None:
            self._shell.close()

    def run(self, block: Block) -> None:
        """Runs a block, and saves it where it has a file's name.

        Raises:
            AssertionError: a command of it failed.
            Exception: what its Python code raises.
        """
        code = in_hand(block.code)
        if block.title:
            (self._folder / block.title).write_text(code, encoding="utf-8")
        if block.language == "python":
            exec(compile(code, block.where, "exec"), self.names)
        elif block.language in SHELL:
            self._shell = self._shell or Shell(self._folder, self._environment)
            self._shell.run(block)


class Shell:
    """One bash for all blocks of a page: what an earlier one exported, a later one finds."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-s"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._send("set -eo pipefail\n")

    def run(self, block: Block) -> str:
        """Its output.

        Raises:
            AssertionError: a command failed, or took too long.
        """
        mark = f"done {json.dumps(block.where)}"
        self._send(f"{{ {block.commands}\n}} </dev/null\necho '{mark}'\n")
        return self._until(mark, block)

    def close(self) -> None:
        """Ends it, and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def _until(self, mark: str, block: Block) -> str:
        """Return the output before the mark."""
        assert self._process.stdout is not None
        said, ends = b"", time.monotonic() + SECONDS
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while not said.endswith(f"{mark}\n".encode()):
                if not ready.select(max(0.0, ends - time.monotonic())):
                    raise AssertionError(f"{block.where}: no end after {SECONDS:.0f} s; so far:\n{said.decode()}")
                if not (part := os.read(self._process.stdout.fileno(), 65536)):
                    raise AssertionError(f"{block.where}: a command failed:\n{said.decode()}")
                said += part
        return said.decode().removesuffix(f"{mark}\n")


def environment(home: Path) -> dict[str, str]:
    """A shell's, with this tree's `hpo` before all others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "WARMBAND_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    code = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PATH": path, "PYTHONPATH": code, "WARMBAND_HOME": str(home), "HOME": str(home), "COLUMNS": "120"}


def begin(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, Any]) -> Session:
    """A session in a folder; this process finds its home there too."""
    for name in [name for name in os.environ if name.startswith("WARMBAND_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WARMBAND_HOME", str(home))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    session = Session(folder, environment(home), names)
    monkeypatch.setitem(sys.modules, "shown", session._module)
    session.names["__name__"] = "shown"
    return session
