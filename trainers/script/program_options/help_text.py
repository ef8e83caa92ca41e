"""Options in what a program prints for `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainers.script.program_options.option import ProgramOption

_WORD = r"-{1,2}\w[^\s,=/\[]*"
_OPTION = re.compile(rf"^\s{{1,8}}(?P<words>{_WORD}(?:(?: [A-Z{{<][^,\s]*)?(?:,| ?/|\|) ?{_WORD})*)(?P<rest>.*)$")
_VALUE = re.compile(r"^(?:[ =]\[?|\[=)?(?P<value>\{[^}]*\}|<[^>]+>|\[[^\]]+\]|[A-Z][A-Z0-9_.|-]*)\]?")
_DEFAULT = re.compile(r"[\[(]default:? ?=?\s*(?P<default>[^\])]*)[\])]", re.IGNORECASE)


def options_in_help(text: str) -> Iterator[ProgramOption]:
    """Read a program's help, as argparse, click, typer and absl write it.

    Args:
        text: the help.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        line = line.strip("│ ").rjust(len(line.strip("│ ")) + 2) if "│" in line else line
        found = _OPTION.match(line)
        if found is None:
            continue
        words = [each.partition("=")[0] for each in re.split(r"[,|/] ?|\s", found["words"]) if each.startswith("-")]
        words = [each.replace("[no]", "") for each in words]
        more = " ".join(each.strip() for each in lines[number + 1 : number + 3] if not _OPTION.match(each))
        rest = found["rest"]
        value = _VALUE.match(rest)
        long = [each for each in words if each.startswith("--") and not each.startswith("--no-")] or words
        name = long[0].lstrip("-").replace("-", "_")
        if name in ("help", "helpfull", "helpshort", "version", "install_completion", "show_completion", "h"):
            continue
        default = _DEFAULT.search(f"{rest} {more}")
        negated = any(each.startswith("--no-") for each in words)
        given = value["value"] if value else ""
        value_given = _plain(default["default"]) if default else None
        number = isinstance(value_given, int | float)
        choices = tuple(re.split(r"[,|]", given.strip("{}<>[]"))) if re.search(r"[,|]", given) else ()
        yield ProgramOption(
            name=name,
            options=tuple(each for each in words if not each.startswith("--no-") or not negated or len(words) == 1),
            kind="choices" if choices else "number" if number else "text" if given else "switch",
            whole=isinstance(value_given, int),
            default=value_given,
            help=" ".join(rest[value.end() if value else 0 :].split()),
            choices=choices,
            boolean="" if given else "--flag/--no-flag" if negated else "--flag",
        )


def _plain(text: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text in ("None", "", "SUPPRESS") else text.strip("'\"")
