"""Options that stand in files of configuration: Hydra's folder and ConfigStore, and OmegaConf's files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainers.script.program_options.dataclass_options import Parser, of_name
from trainers.script.program_options.option import ProgramOption
from trainers.script.program_options.source import Module, Source, keywords

_HYDRA = Parser(package="hydra", calls=(), boolean="--flag true", list="json")
_FROM_WORDS = ("OmegaConf.from_cli", "OmegaConf.from_dotlist")


def reads_overrides(source: Source) -> bool:
    """Whether a program takes `name=value`, as Hydra and OmegaConf do."""
    return any(True for _ in _mains(source)) or any(
        module.dotted(call.func).endswith(_FROM_WORDS) for module, call in source.calls()
    )


def config_options(source: Source) -> Iterator[ProgramOption]:
    """The keys of the configuration, with dots."""
    for name, folder in _configurations(source):
        yield from _of_file(source, folder, name)
    for module, call in source.calls():
        if module.dotted(call.func).endswith("OmegaConf.load") and call.args:
            path = module.value(call.args[0])
            if isinstance(path, str):
                yield from _leaves(_yaml(source.noted(source.folder / path)), "")
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "store" and source.imports("hydra"):
            given = keywords(call)
            prefix = module.value(given.get("group"))
            kind = module.dotted(given.get("node")).rpartition(".")[2]
            yield from of_name(source, _HYDRA, kind, f"{prefix}." if isinstance(prefix, str) else "")


def config_folders(source: Source) -> list[Path]:
    """Folders of files that `hydra.main` reads."""
    return [folder for _, folder in _configurations(source)]


def _configurations(source: Source) -> Iterator[tuple[str, Path]]:
    """Names and folders of the files that `hydra.main` reads."""
    for module, call in _mains(source):
        given = keywords(call)
        name, folder = module.value(given.get("config_name")), module.value(given.get("config_path"))
        if isinstance(name, str) and isinstance(folder, str):
            yield name, module.path.parent / folder


def _mains(source: Source) -> Iterator[tuple[Module, ast.Call]]:
    for module, call in source.calls():
        if module.dotted(call.func) in ("hydra.main", "hydra_main"):
            yield module, call


def _of_file(source: Source, folder: Path, name: str, prefix: str = "", depth: int = 0) -> Iterator[ProgramOption]:
    """A file of Hydra's, and before its own keys those of the files in its list of defaults."""
    content = _yaml(source.noted(folder / f"{name.removesuffix('.yaml')}.yaml"))
    for entry in content.pop("defaults", []) if depth < 5 and isinstance(content.get("defaults"), list) else []:
        if isinstance(entry, dict) and len(entry) == 1:
            ((group, chosen),) = entry.items()
            group = str(group).removeprefix("override ").removeprefix("optional ").partition("@")[0].strip("/ ")
            if isinstance(chosen, str):
                inner = f"{prefix}{group.replace('/', '.')}."
                yield ProgramOption(name=f"{prefix}{group}", kind="group", default=chosen)
                yield from _of_file(source, folder / group, chosen, inner, depth + 1)
        elif isinstance(entry, str) and entry != "_self_":
            yield from _of_file(source, folder, entry, prefix, depth + 1)
    yield from _leaves(content, prefix)


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[ProgramOption]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if key in ("defaults", "hydra"):
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{name}.")
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        yield ProgramOption(
            name=name,
            kind="switch"
            if isinstance(value, bool)
            else "number"
            if number
            else "list"
            if isinstance(value, list)
            else "text",
            whole=isinstance(value, int),
            default=value,
        )


def _yaml(path: Path) -> dict[str, Any]:
    """The keys of a file; none where it cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError, RecursionError):
        return {}
    return dict(found) if isinstance(found, dict) else {}
