"""One option of a program, and all that its source says of its command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["switch", "number", "text", "list", "choices", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOption:
    """An option or a positional value of a program.

    Args:
        name: of the value in the program, such as `batch_size`.
        options: the words that stand before the value, such as `--batch-size` and `-b`; none of a positional value.
        kind: of values; a group holds keys of its own.
        whole: whether a number has to be whole.
        default: the value that the program takes where none is given; None where the source computes it.
        required: whether it has to be given.
        help: the program's words about it.
        choices: values that it takes, if not all.
        boolean: how True and False are given, as in `Arguments.booleans`; empty where the source does not tell.
        list: how lists are given, as in `Arguments.lists`; empty where the source does not tell.
        bare: whether its word stands alone, without a value behind it.
        stored: True or False that a bare option stores; None of others, and where the source does not tell.
        positional: whether it is given without a name.
        command: the subcommand that it belongs to, if any.
    """

    name: str
    options: tuple[str, ...] = ()
    kind: Kind = "text"
    whole: bool = False
    default: Any = None
    required: bool = False
    help: str = ""
    choices: tuple[Any, ...] = ()
    boolean: str = ""
    list: str = ""
    bare: bool = False
    stored: bool | None = None
    positional: bool = False
    command: str = ""

    def spelled(self, name: str) -> str:
        """The word that gives it: the one that a user's name has, else the first long one."""
        same = [word for word in self.options if word.lstrip("-") == name]
        alike = [word for word in self.options if _key(word) == _key(name)]
        long = [word for word in self.options if word.startswith("--")]
        return next(iter((*same, *alike, *long, *self.options)), f"--{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """All that a program's source says of how it is given values.

    Args:
        parsers: libraries that read its command line, such as "argparse".
        options: that it declares, in their order.
        style: "name=value" where it reads Hydra's form, else empty.
        boolean: how parsers of these libraries take True and False of options that were not found; empty where unknown.
        list: the same of lists.
        variables: variables of the environment that it reads.
        reads_words: whether it reads `sys.argv` itself.
        typed: whether it reads hyperparameters by SageMaker's variables or Warmband's file.
        meets_others: whether its processes find each other by variables of the environment.
    """

    parsers: frozenset[str] = frozenset()
    options: tuple[ProgramOption, ...] = ()
    style: str = ""
    boolean: str = ""
    list: str = ""
    variables: frozenset[str] = frozenset()
    reads_words: bool = False
    typed: bool = False
    meets_others: bool = False
    _by_word: dict[str, ProgramOption] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for option in self.options:
            for word in option.options:
                self._by_word.setdefault(word.lstrip("-"), option)
        for option in self.options:
            self._by_word.setdefault(option.name, option)
        for option in self.options:
            for word in (*option.options, option.name):
                self._by_word.setdefault(_key(word), option)

    def find(self, name: str) -> ProgramOption | None:
        """The option of a hyperparameter: by its word, by the program's name for it, or with hyphens as underscores."""
        return self._by_word.get(name) or self._by_word.get(_key(name))


NOTHING = ProgramOptions()
"""Of a program whose source tells nothing."""


def is_truth(value: Any, *, or_none: bool = False) -> bool:
    """Whether a value is True or False, or the number 1 or 0, or None where that counts as False."""
    return (value is None and or_none) or (isinstance(value, int) and value in (0, 1))


def settled(options: Iterable[ProgramOption]) -> tuple[ProgramOption, ...]:
    """Return the options with the forms of True and False that hold for all declarations of a name.

    Two switches of one value, such as `--amp` and `--no-amp`, become the pair of their words. A word that is declared
    in several ways has no form: which declaration counts, only running the program would tell.

    Args:
        options: in the order of their declarations.
    """
    found = [*options]
    words: dict[tuple[str, str, bool], str] = {}
    for each in found:
        if each.stored is not None and each.options:
            words.setdefault((each.command, each.name, each.stored), each.spelled(""))
    paired = [
        replace(each, boolean=f"{each.spelled('')}/{other}")
        if each.stored is not None
        and each.options
        and (other := words.get((each.command, each.name, not each.stored))) is not None
        else each
        for each in found
    ]
    forms: dict[str, set[tuple[str, bool]]] = {}
    for each in paired:
        for word in each.options:
            forms.setdefault(_key(word), set()).add((each.boolean, each.bare))
    several = {key for key, those in forms.items() if len(those) > 1}
    unsettled = (
        replace(each, boolean="", bare=False) if several & {*map(_key, each.options)} else each for each in paired
    )
    return tuple({(each.name, each.options, each.command): each for each in unsettled}.values())


def _key(word: str) -> str:
    return word.lstrip("-").replace("-", "_")
