"""Source of a program: its file and the modules beside it that it imports, parsed and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

LARGEST = 2 << 20
"""Bytes of a file that is parsed; programs are shorter."""
MOST_MODULES = 200


class _Unknown:
    """Stands for a value that only running the program would give."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()

Stamp = tuple[int, int] | None
"""Size and time of a file; None if there is no such file."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Module:
    """A parsed file.

    Args:
        path: the file.
        tree: of its source.
        aliases: what each imported name stands for, with dots.
        constants: nodes of its names that are set once, at its top.
    """

    path: Path
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)

    def dotted(self, node: ast.AST | None) -> str:
        """The full name of what an expression names, such as `argparse.ArgumentParser`; empty for others."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join((self.aliases.get(node.id, node.id), *parts))

    def is_called(self, name: str) -> bool:
        """Whether an import names this file so, such as `lib.utils` for `lib/utils.py`."""
        parts = [*self.path.parent.parts, *([] if self.path.stem == "__init__" else [self.path.stem])]
        return parts[-len(name.split(".")) :] == name.split(".")

    def value(self, node: ast.AST | None, depth: int = 0) -> Any:
        """The value of an expression of constants; `UNKNOWN` where there is more in it.

        Of a variable of the environment with a default, the value is the default.
        """
        if node is None or depth > 20:
            return UNKNOWN
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(node)
        match node:
            case ast.Name(id=name) if name in self.constants:
                return self.value(self.constants[name], depth + 1)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.value(each, depth + 1) for each in elements]
            case ast.Call(func=ast.Name(id="list" | "tuple" | "sorted"), args=[inner]):
                return self.value(inner, depth + 1)
            case ast.Call(func=ast.Name(id="int" | "float" | "str" | "bool"), args=[inner]):
                return self.value(inner, depth + 1)
            case ast.Call(func=function, args=[_, default]) if _reads_variable(self.dotted(function)):
                return self.value(default, depth + 1)
            case ast.BinOp():
                return self._computed(node, depth)
        return UNKNOWN

    def _computed(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
        numbers = all(isinstance(each, int | float) and abs(each) < 1e9 for each in (left, right))
        with suppress(ArithmeticError, ValueError):
            match node.op:
                case ast.Mult() if numbers:
                    return left * right
                case ast.Div() if numbers:
                    return left / right
                case ast.Add() if numbers or (isinstance(left, str) and isinstance(right, str)):
                    return left + right
                case ast.Sub() if numbers:
                    return left - right
                case ast.Pow() if numbers and abs(right) <= 64:
                    return left**right
        return UNKNOWN


@dataclass(slots=True)
class Source:
    """Modules of a program.

    Args:
        folder: its source folder.
        modules: the program's file first, then those that it imports from the folder.
        stamps: of all files that were looked for, before they were read.
    """

    folder: Path
    modules: list[Module]
    stamps: dict[Path, Stamp] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, entry_point: str) -> Source:
        """Parses a program; files that cannot be read or parsed are left out, so that there may be no module at all."""
        found = cls(folder=folder, modules=[])
        waiting = [folder / entry_point]
        while waiting and len(found.modules) < MOST_MODULES:
            path = waiting.pop(0)
            if path in found.stamps or path.suffix != ".py":
                continue
            module = _parsed(found.noted(path))
            if module is not None:
                found.modules.append(module)
                waiting += _imported(module, folder, (folder / entry_point).parent)
        return found

    def noted(self, path: Path) -> Path:
        """Return a path that is read next, after its stamp is noted."""
        self.stamps[path] = _stamp(path)
        return path

    def beside(self, path: str) -> Module | None:
        """Read another Python file of the folder; None if it is not there or cannot be parsed.

        Args:
            path: from the folder on.
        """
        return _parsed(self.noted(self.folder / path))

    @property
    def is_current(self) -> bool:
        """Whether all files that were looked for are as they were."""
        return all(_stamp(path) == stamp for path, stamp in self.stamps.items())

    def calls(self) -> Iterator[tuple[Module, ast.Call]]:
        """All calls, in the order of the text."""
        for module in self.modules:
            for node in _in_order(module.tree):
                if isinstance(node, ast.Call):
                    yield module, node

    def functions(self) -> Iterator[tuple[Module, Function]]:
        """All functions, in the order of the text."""
        for module in self.modules:
            for node in _in_order(module.tree):
                if isinstance(node, Function):
                    yield module, node

    def function(self, module: Module, name: str) -> Function | None:
        """Return the function that a module calls by a name; None if several may be meant.

        Args:
            module: where the name stands.
            name: with the modules in front of it, as `Module.dotted` has it.
        """
        package, _, last = name.rpartition(".")
        found = [(home, node) for home, node in self.functions() if last and node.name == last]
        if len(found) > 1:
            found = [(home, node) for home, node in found if (home.is_called(package) if package else home is module)]
        return found[0][1] if len(found) == 1 else None

    def classes(self) -> Mapping[str, tuple[Module, ast.ClassDef]]:
        """All classes by their names."""
        found: dict[str, tuple[Module, ast.ClassDef]] = {}
        for module in self.modules:
            for node in _in_order(module.tree):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, (module, node))
        return found

    def imports(self, name: str) -> bool:
        """Whether any module imports a package."""
        return any(
            target == name or target.startswith(f"{name}.")
            for module in self.modules
            for target in module.aliases.values()
        )

    @property
    def text(self) -> str:
        """The source of all modules."""
        return "\n".join(ast.unparse(module.tree) for module in self.modules)


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    """The named arguments of a call."""
    return {each.arg: each.value for each in call.keywords if each.arg is not None}


def _reads_variable(function: str) -> bool:
    return function in ("os.environ.get", "environ.get", "os.getenv", "getenv")


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return None
    return (facts.st_size, facts.st_mtime_ns)


def _parsed(path: Path) -> Module | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        tree = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    module = Module(path=path, tree=tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.partition(".")[0]
                module.aliases[each.asname or first] = each.name if each.asname else first
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                dots = "." * node.level
                module.aliases[each.asname or each.name] = f"{dots}{node.module or ''}.{each.name}".lstrip(".")
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                module.constants[name] = value
    return module


def _imported(module: Module, folder: Path, beside: Path) -> Iterator[Path]:
    """Files below the source folder that a module may import; most are not there."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from _files((beside, folder), each.name)
        elif isinstance(node, ast.ImportFrom):
            places: tuple[Path, ...] = (beside, folder)
            if node.level:
                places = (module.path.parents[node.level - 1],) if node.level <= len(module.path.parents) else ()
            yield from _files(places, node.module or "")
            for each in node.names:
                yield from _files(places, f"{node.module or ''}.{each.name}".strip("."))


def _files(places: tuple[Path, ...], name: str) -> Iterator[Path]:
    for place in dict.fromkeys(places) if name else ():
        base = place.joinpath(*filter(None, name.split(".")))
        yield from (base.with_name(f"{base.name}.py"), base / "__init__.py")


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes as they stand in the text, an outer one before those within it."""
    waiting = list(ast.iter_child_nodes(tree))[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += list(ast.iter_child_nodes(node))[::-1]
