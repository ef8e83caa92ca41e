"""A launcher of the user's own: a command line with placeholders."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trainers.errors import ConfigurationError
from trainers.script.launchers.place import Launcher, LauncherOptions, Place, Start, meeting, runnable
from trainers.script.placeholders import check_placeholder, is_placeholder, placeholders_in, replaced

_PROGRAM, _SCRIPT = "program", "script"


def is_template(launcher: str) -> bool:
    """Whether a launcher is a command line."""
    return any(found["name"] in (_PROGRAM, _SCRIPT) for found in placeholders_in(launcher))


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


PLACES = (_PROGRAM, _SCRIPT, *values(Place(rank=0, world_size=1, hosts=("",), ports=((0,),), cpus=0, gpus=0)))
"""Placeholders that are the same for all trials of a gang, but for the program itself."""


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
    for word in words(template, template):
        for found in placeholders_in(word):
            if is_placeholder(found):
                check_placeholder("launcher", template, found, names=None, channels=None, also=PLACES)


def uses_trial(template: str) -> str:
    """The first placeholder of a command line that is another one for each trial; empty if there is none."""
    if not is_template(template):
        return ""
    found = (each for each in placeholders_in(template) if is_placeholder(each) and each["name"] not in PLACES)
    return next((each[0] for each in found), "")


def by_template(template: str) -> Launcher:
    """The launcher of a command line.

    `{program}` are the words that run the program, `{script}` the same without the Python in front of a Python file, as
    launchers want it that start Python themselves. A word of its own becomes as many words as there are; within a
    word, as in `sh -c '{program} > log'`, they are quoted for a shell.
    """

    def start(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
        whole = {_PROGRAM: runnable(program), _SCRIPT: tuple(program)}
        known = values(place) | {name: shlex.join(words) for name, words in whole.items()}

        command: list[str] = []
        for word in words(template, template):
            alone = placeholders_in(word)
            if len(alone) == 1 and alone[0][0] == word and alone[0]["name"] in whole:
                command += whole[alone[0]["name"]]
            else:
                command.append(replaced("launcher", word, options.fillings, known))
        return Start(command=tuple(command), environment=meeting(place))

    return start
