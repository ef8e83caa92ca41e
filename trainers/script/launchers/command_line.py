"""A launcher of the user's own: a command line with placeholders."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.script.launchers.place import Launcher, LauncherOptions, Place, Start, meeting, runnable

_PLACEHOLDER = re.compile(r"\{\{(?P<literal>\w+)\}\}|\{(?P<name>\w+)\}")
_PROGRAM, _SCRIPT = "program", "script"


def is_template(launcher: str) -> bool:
    """Whether a launcher is a command line."""
    return any(found["name"] in (_PROGRAM, _SCRIPT) for found in _PLACEHOLDER.finditer(launcher))


def values(place: Place) -> dict[str, str]:
    """The placeholders of a command line, but for those of the program itself."""
    return {
        "rank": str(place.rank),
        "world_size": str(place.world_size),
        "host": place.hosts[place.rank],
        "hosts": ",".join(place.hosts),
        "machines": place.machines,
        "master": place.master,
        "port": str(place.master_port),
        "cpus": str(place.cpus),
        "gpus": str(place.gpus),
        "processes": str(place.processes),
    }


def words(line: str, launcher: str) -> list[str]:
    """A line in words, as a shell takes it.

    Raises:
        ConfigurationError: a quotation has no end, naming the launcher.
    """
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ConfigurationError(
            f"launcher is {launcher!r}: {error}; give a command line as a shell takes it"
        ) from None


def check_template(template: str) -> None:
    """Refuses placeholders that there are none of.

    Raises:
        ConfigurationError: naming one, and those that there are.
    """
    known = {_PROGRAM, _SCRIPT, *values(Place(rank=0, world_size=1, hosts=("",), ports=((0,),), cpus=0, gpus=0))}
    for word in words(template, template):
        for found in _PLACEHOLDER.finditer(word):
            if found["name"] and found["name"] not in known:
                raise ConfigurationError(
                    f"launcher is {template!r}, and its placeholder {{{found['name']}}} is unknown; give "
                    f"{', '.join(f'{{{name}}}' for name in sorted(known))}, or double its braces to have it as it is"
                    f"{did_you_mean(found['name'], known)}"
                )


def by_template(template: str) -> Launcher:
    """The launcher of a command line.

    `{program}` are the words that run the program, `{script}` the same without the Python in front of a Python file, as
    launchers want it that start Python themselves. A word of its own becomes as many words as there are; within a
    word, as in `sh -c '{program} > log'`, they are quoted for a shell.
    """

    def start(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
        whole = {_PROGRAM: runnable(program), _SCRIPT: tuple(program)}
        known = values(place) | {name: shlex.join(words) for name, words in whole.items()}

        def filled(found: re.Match[str]) -> str:
            return f"{{{found['literal']}}}" if found["literal"] else known[found["name"]]

        command: list[str] = []
        for word in words(template, template):
            alone = _PLACEHOLDER.fullmatch(word)
            if alone and alone["name"] in whole:
                command += whole[alone["name"]]
            else:
                command.append(_PLACEHOLDER.sub(filled, word))
        return Start(command=tuple(command), environment=meeting(place))

    return start
