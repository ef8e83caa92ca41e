"""Host of a program that is kept loaded: runs it once for each trial, in one process that stays; run as a program.

It connects to its worker, at the address that `ADDRESS` has, and says the token of its program. Each line that it then
gets is a trial's order, as JSON: `program`, `arguments`, `environment`, `folder`, `directory`, `objective`, `stop`,
`seen`, `first_step`, `every`, and `machines`, as the launcher's words have them and as they are now. Its answer, once
the program has come to its end, is a line with what the trial left behind. A program that fails ends the process, as it
would have ended its own.

The program is run anew, as `__main__`; modules stay, but for those of its own folder. What it defines as `main(args)`
is called where it does not do so itself.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import inspect
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import warmband
from warmband_state import State

ADDRESS = "WARMBAND_ORDERS"
"""The variable with the address of the worker: a host, a colon, and a port."""
TOKEN = "WARMBAND_PROGRAM"
"""The variable with the token that the worker knows its program by."""
MARK = "\x1d\x1d\x1d"
"""The last line of a trial's output: the worker has then read all of it. It shows nothing, and nobody prints it."""


class Host:
    """Runs a program's turns.

    Args:
        connection: to the worker.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._orders = connection.makefile("r", encoding="utf-8")
        self._answers = connection
        self._order: dict[str, Any] | None = None
        self._state: State | None = None
        self._process = os.getpid()
        self._behind = sys.argv[1:]
        """Words that the launcher gives the program itself, such as its rank; they stand behind the trial's."""
        self._own_main = sys.modules["__main__"]
        self._aside: dict[str, ModuleType] = {}
        """Modules whose names the program's own have."""
        self._above: frozenset[str] | None = None
        """Modules that a program has at its loop around trials."""

    def serve(self) -> None:
        """Runs the program for each order, until the worker has no more."""
        turn = warmband.turn
        turn.next, turn.loops, turn.kept_loaded = self.next, self.loops, True
        while self.next():
            assert self._order is not None
            try:
                _run(self._order)
            except warmband.Paused:
                pass
            except BaseException as ending:
                if not (isinstance(ending, SystemExit) and ending.code in (None, 0)):
                    assert self._state is not None
                    self._state.leave()
                    raise
            # What the program made goes with its module, before another one makes as much.
            sys.modules["__main__"], self._above = self._own_main, None

    def next(self) -> bool:
        """Ends this turn, if there is one, and begins the next; False where no order comes any more."""
        if os.getpid() != self._process:  # A copy of it that the program made, and that came back.
            return False
        if self._order is not None:
            self._end(self._order)
            self._order = None
        line = self._orders.readline()
        if not line:
            return False
        self._order = json.loads(line)
        self._begin(self._order)
        return True

    def loops(self) -> None:
        """The program has come to its loop around trials: what is there now is there for all of them."""
        if self._above is None and self._state is not None and self._order is not None:
            self._above = frozenset(sys.modules)
            self._state.settle()
            self._state.begin(self._order["environment"])

    def _begin(self, order: dict[str, Any]) -> None:
        if self._state is None:
            before = dict(os.environ)
            _import(Path(order["program"]), Path(order["program"]).parent, set())
            os.environ.clear()
            os.environ.update(before)
            self._state = State()
        os.chdir(order["directory"])
        sys.argv = [order["program"], *order["arguments"], *self._words_behind(order)]
        sys.path[0] = os.path.dirname(order["program"])
        importlib.invalidate_caches()
        self._lay_aside(order)
        self._state.begin(order["environment"])
        turn = warmband.turn
        turn.objective, turn.stop, turn.seen = order["objective"], order["stop"], order["seen"]
        turn.first_step, turn.every, turn.stopped = order["first_step"], order["every"], False

    def _words_behind(self, order: dict[str, Any]) -> list[str]:
        before, now = order["machines"]
        return [word.replace(before, now) for word in self._behind]

    def _end(self, order: dict[str, Any]) -> None:
        """Puts back what the trial changed, and answers with what cannot be put back."""
        assert self._state is not None
        above = self._above or frozenset()
        for name in _below(order["folder"]) - above:
            del sys.modules[name]
        sys.modules.update({name: module for name, module in self._aside.items() if name not in sys.modules})
        gc.collect()
        left = self._state.end()
        changed = warmband.store.drop_changed()
        os.write(self._state.output, f"\n{MARK}\n".encode())
        answer = {"left": left, "changed": changed}
        self._answers.sendall(json.dumps(answer).encode() + b"\n")

    def _lay_aside(self, order: dict[str, Any]) -> None:
        """Lets the program import its own modules that have the names of others, as a new process would."""
        folder = Path(order["program"]).parent
        own = {each.stem for each in folder.iterdir() if each.suffix == ".py" or Path(each, "__init__.py").is_file()}
        loaded = _below(order["folder"])
        self._aside = {
            name: module
            for name, module in sys.modules.items()
            if name.partition(".")[0] in own - {"__main__", "warmband"} - loaded
            and getattr(getattr(module, "__spec__", None), "origin", None) not in ("built-in", "frozen")
        }
        for name in self._aside:
            del sys.modules[name]


def _below(folder: str) -> set[str]:
    """Names of modules whose files are in a folder, by its own path or by that which it links to."""
    paths = tuple(os.path.join(each, "") for each in (folder, os.path.realpath(folder)))
    modules = list(sys.modules.items())
    return {name for name, module in modules if (getattr(module, "__file__", None) or "").startswith(paths)}


def _run(order: dict[str, Any]) -> None:
    """Executes the program's file as Python itself would."""
    path = order["program"]
    source = Path(path).read_bytes()
    module = ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    tree = ast.parse(source, path)
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)
    main = getattr(module, "main", None)
    if callable(main) and not _calls_main(tree):
        arguments = [argparse.Namespace(**warmband.hyperparameters())] if inspect.signature(main).parameters else []
        main(*arguments)


def _calls_main(tree: ast.Module) -> bool:
    """Whether a script calls its `main` itself, or does something of its own where it is the main program."""
    statements = [each for each in tree.body if not isinstance(each, ast.FunctionDef | ast.ClassDef)]
    names = {node.id for each in statements for node in ast.walk(each) if isinstance(node, ast.Name)}
    return bool(names & {"main", "__name__"})


def _import(script: Path, folder: Path, known: set[str]) -> None:
    """Imports what a script and its own modules will import, so that what they then change can be put back.

    What fails here fails again where the script does it, and says so there.
    """
    with suppress(OSError, SyntaxError, ValueError):
        tree = ast.parse(script.read_bytes())
        own = set(tree.body)
        for node in ast.walk(tree):  # These come first, in their order.
            if node in own:
                _set_variable(node)
            for name, attributes in _imported(node):
                _import_one(name, attributes, folder, known)


def _import_one(name: str, attributes: list[str], folder: Path, known: set[str]) -> None:
    own = [folder / f"{name.replace('.', '/')}.py", folder / name.replace(".", "/") / "__init__.py"]
    if name in known or name.partition(".")[0] in ("warmband", "__main__"):
        return
    known.add(name)
    if (file := next(filter(Path.is_file, own), None)) is not None:
        _import(file, folder, known)
        return
    with suppress(Exception, SystemExit):
        module = importlib.import_module(name)
        for attribute in attributes:  # Packages that load their modules when they are asked for.
            getattr(module, attribute)


def _imported(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    if isinstance(node, ast.Import):
        yield from ((each.name, []) for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module, [each.name for each in node.names]


def _set_variable(statement: ast.AST) -> None:
    """Sets what a script sets in `os.environ` for the packages that it imports below, such as KERAS_BACKEND."""
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=of, slice=ast.Constant(value=str(name)))]) if _is_environ(of):
            if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                os.environ[name] = statement.value.value
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=of, attr="setdefault"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(value))],
            )
        ) if _is_environ(of):
            os.environ.setdefault(name, value)


def _is_environ(node: ast.expr) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def main() -> None:
    """Connects, and serves; the end of the worker is its own, also where the program is in the midst of a turn."""
    host, _, port = os.environ[ADDRESS].rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.settimeout(None)
    connection.sendall(os.environ[TOKEN].encode() + b"\n")
    Host(connection).serve()


if __name__ == "__main__":
    main()
