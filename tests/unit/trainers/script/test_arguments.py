"""Arguments of programs: what a real parser receives equals the configuration, whatever the style."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given, settings, strategies as st
from ruamel.yaml import YAML

from tests.support.properties import examples
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError
from trainers.script.arguments import (
    Arguments,
    arguments_of,
    check_arguments,
    check_names,
    file_text,
    given_of,
    override_text,
)
from trainers.script.program_options import ProgramOptions, options_of

Declare = Callable[[str], ProgramOptions]

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NUMBERS = st.integers() | st.floats(allow_nan=False)


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Reads the options of a program of this text."""
    number = 0

    def made(text: str) -> ProgramOptions:
        nonlocal number
        number += 1
        (tmp_path / f"train{number}.py").write_text(text)
        return options_of(tmp_path, f"train{number}.py")

    return made


ARGPARSE = """
import argparse
def boolean(text): return text.lower() in ("yes", "true", "1")
def parser():
    p = argparse.ArgumentParser(allow_abbrev=False)
    group = p.add_argument_group("more")
    p.add_argument("--lr", type=float)
    p.add_argument("-n", type=int)
    p.add_argument("--c", type=float)
    p.add_argument("-wd", type=float)
    p.add_argument("--batch-size", type=int)
    p.add_argument("--opt.name")
    p.add_argument("--lambda", type=float)
    p.add_argument("--text")
    p.add_argument("--nesterov", action="store_true")
    p.add_argument("--no-shuffle", dest="shuffle", action="store_false")
    p.add_argument("--bias", action="store_false")
    p.add_argument("--ema", action=argparse.BooleanOptionalAction, default=True)
    group.add_argument("--amp", type=bool, default=True)
    p.add_argument("--fused", type=boolean, default=False)
    p.add_argument("--one", type=int, default=0)
    p.add_argument("--deterministic", type=lambda text: text == "true", default=True)
    p.add_argument("--word", choices=["yes", "no"])
    p.add_argument("--layers", nargs="+", type=int)
    p.add_argument("--rates", nargs="*", type=float)
    p.add_argument("--pair", nargs=2, type=float)
    p.add_argument("--tag", action="append")
    p.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")])
    p.add_argument("--config", type=json.loads)
    return p
import json
"""
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "lr": st.floats(allow_nan=False),
    "n": st.integers(),
    "c": st.floats(allow_nan=False),
    "wd": st.floats(allow_nan=False),
    "batch_size": st.integers(),
    "opt.name": TEXT,
    "lambda": st.floats(allow_nan=False),
    "text": TEXT,
    **dict.fromkeys(("nesterov", "shuffle", "bias", "ema", "amp", "fused", "deterministic"), st.booleans()),
    "one": st.booleans(),
    "layers": st.lists(st.integers(), min_size=1, max_size=4),
    "rates": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    "pair": st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    "tag": st.lists(TEXT, min_size=1, max_size=3),
    "sizes": st.lists(st.integers(), min_size=1, max_size=4),
    "config": st.dictionaries(st.text(max_size=3), NUMBERS | st.none() | st.booleans(), max_size=3),
}


@pytest.fixture(scope="module")
def argparse_program(tmp_path_factory: pytest.TempPathFactory) -> tuple[argparse.ArgumentParser, ProgramOptions]:
    folder = tmp_path_factory.mktemp("argparse")
    (folder / "train.py").write_text(ARGPARSE)
    namespace: dict[str, Any] = {}
    exec(ARGPARSE, namespace)
    return namespace["parser"](), options_of(folder, "train.py")


@pytest.mark.parametrize("style", ["--name value", "--name=value"])
@given(values=st.fixed_dictionaries({}, optional=VALUES))
@settings(max_examples=examples(150))
def test_argparse_receives_the_configuration(
    argparse_program: tuple[argparse.ArgumentParser, ProgramOptions], style: str, values: dict[str, Any]
) -> None:
    parser, declared = argparse_program
    words = arguments_of(values, Arguments(style=style), declared)
    received = vars(parser.parse_args(words))
    assert {name: received[name] for name in values} == values


def test_a_switch_is_given_as_a_switch(
    argparse_program: tuple[argparse.ArgumentParser, ProgramOptions],
) -> None:
    _, declared = argparse_program
    assert arguments_of({"nesterov": True, "ema": True, "shuffle": True}, None, declared) == ["--nesterov", "--ema"]
    assert arguments_of({"nesterov": False, "ema": False, "shuffle": False}, None, declared) == [
        *("--no-ema", "--no-shuffle")
    ]
    assert arguments_of({"amp": False, "word": True}, None, declared) == ["--amp", "", "--word", "yes"]
    assert arguments_of({"nesterov": False, "layers": [8, 16]}, None, declared) == [*("--layers", "8", "16")]


def test_an_option_without_a_value_takes_true_and_false_alone(declare: Declare) -> None:
    declared = declare(
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--amp', action='store_true')\np.add_argument('--verbose', action='count')"
    )
    cases = [("amp", "false"), ("amp", 1), ("verbose", 2)]
    refuses_each(
        [
            (lambda given=given: check_arguments(dict([given]), Arguments(), declared, "train.py"), (*given, "True"))
            for given in cases
        ],
        ConfigurationError,
    )
    check_arguments({"amp": False, "verbose": None}, Arguments(), declared, "train.py")
    check_arguments({"amp": "yes"}, Arguments(booleans={"amp": "--flag yes/no"}), declared, "train.py")


def test_names_are_spelled_as_the_program_declares_them(
    argparse_program: tuple[argparse.ArgumentParser, ProgramOptions],
) -> None:
    _, declared = argparse_program
    values = {"batch_size": 1, "batch-size": 2, "n": 3, "c": 4, "wd": 5, "unknown_one": 6, "x": 7}
    assert arguments_of(values, None, declared) == [
        *("--batch-size", "1", "--batch-size", "2", "-n", "3", "--c", "4", "-wd", "5", "--unknown_one", "6", "-x", "7")
    ]


CLICK = """
import click
@click.command()
@click.option("--lr", type=float)
@click.option("-n", "--count", "n", type=int)
@click.option("--text")
@click.option("--nesterov", is_flag=True)
@click.option("--shuffle/--ordered", default=True)
@click.option("--amp", type=bool)
@click.option("--tag", multiple=True)
@click.option("--pair", nargs=2, type=float)
def main(**given): return given
"""


@pytest.fixture(scope="module")
def click_program(tmp_path_factory: pytest.TempPathFactory) -> tuple[click.Command, ProgramOptions]:
    folder = tmp_path_factory.mktemp("click")
    (folder / "train.py").write_text(CLICK)
    namespace: dict[str, Any] = {}
    exec(CLICK, namespace)
    return namespace["main"], options_of(folder, "train.py")


@given(
    values=st.fixed_dictionaries(
        {},
        optional={
            "lr": st.floats(allow_nan=False),
            "n": st.integers(),
            "text": TEXT,
            **dict.fromkeys(("nesterov", "shuffle", "amp"), st.booleans()),
            "tag": st.lists(TEXT, max_size=3),
            "pair": st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        },
    )
)
@settings(max_examples=examples(100))
def test_click_receives_the_configuration(
    click_program: tuple[click.Command, ProgramOptions], values: dict[str, Any]
) -> None:
    command, declared = click_program
    received = command.main(arguments_of(values, None, declared), standalone_mode=False)
    assert {
        name: list(received[name]) if isinstance(values[name], list) else received[name] for name in values
    } == values


@given(
    values=st.fixed_dictionaries(
        {},
        optional={
            "learning_rate": st.floats(allow_nan=False),
            "n": st.integers(-(2**40), 2**40),
            "text": TEXT,
            "nesterov": st.booleans(),
            "sizes": st.lists(st.text("abc", min_size=1, max_size=3), max_size=3),
            "many": st.lists(st.integers(-9, 9), min_size=1, max_size=3),
        },
    )
)
@settings(max_examples=examples(100))
def test_absl_receives_the_configuration(tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]) -> None:
    flags = pytest.importorskip("absl.flags")
    text = """
from absl import flags
flags.DEFINE_float("learning_rate", 0.1, "rate")
flags.DEFINE_integer("n", 1, "")
flags.DEFINE_string("text", "", "")
flags.DEFINE_bool("nesterov", True, "")
flags.DEFINE_list("sizes", [], "")
flags.DEFINE_multi_integer("many", [1], "")
"""
    folder = tmp_path_factory.getbasetemp() / "absl-program"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(text)
    own = flags.FlagValues()
    flags.DEFINE_float("learning_rate", 0.1, "rate", flag_values=own)
    flags.DEFINE_integer("n", 1, "", flag_values=own)
    flags.DEFINE_string("text", "", "", flag_values=own)
    flags.DEFINE_bool("nesterov", True, "", flag_values=own)
    flags.DEFINE_list("sizes", [], "", flag_values=own)
    flags.DEFINE_multi_integer("many", [1], "", flag_values=own)
    left = own(["train.py", *arguments_of(values, None, options_of(folder, "train.py"))])
    assert left == ["train.py"]
    assert {name: own[name].value for name in values} == values


def test_a_boolean_whose_form_nobody_knows_is_refused(declare: Declare) -> None:
    def checked(text: str) -> Callable[[], object]:
        return lambda: check_arguments({"flag": True}, Arguments(), declare(text), "train.py")

    unknown = [
        "import sys; print(sys.argv)",
        "from mylib.cli import main; main()",
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('--flag')",
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('--flag', type=elsewhere.truth)",
    ]
    names = ("'flag'", True, "train.py", "booleans", "--flag/--no-flag")
    refuses_each([(checked(text), names) for text in unknown], ConfigurationError)


def test_a_boolean_whose_form_is_said_or_read_is_taken(declare: Declare) -> None:
    plain = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--flag'); a = p.parse_args()"
    for text in (
        f"{plain}; x = a.flag == 'True'",
        f"{plain}; x = a.flag.lower() in ('true', 'yes')",
        f"{plain}; import ast; x = ast.literal_eval(a.flag)",
        "import os, json; values = json.loads(os.environ['SM_HPS'])",
        "import warmband; args = warmband.hyperparameters()",
    ):
        check_arguments({"flag": False}, Arguments(), declare(text), "train.py")
    said = Arguments.of({"booleans": {"flag": "--flag yes/no"}})
    check_arguments({"flag": False}, said, declare("import sys; print(sys.argv)"), "train.py")
    check_arguments({"flag": False}, Arguments.of("environment"), declare("import sys; print(sys.argv)"), "train.py")


@pytest.mark.parametrize(
    ("form", "on", "off"),
    [
        ("--flag", ["--x-y"], []),
        ("--flag/--no-flag", ["--x-y"], ["--no-x-y"]),
        ("--flag/--noflag", ["--x-y"], ["--nox-y"]),
        ("--with-x/--without-x", ["--with-x"], ["--without-x"]),
        ("/--off", [], ["--off"]),
        ("--flag true", ["--x-y", "true"], ["--x-y", "false"]),
        ("--flag=true", ["--x-y=true"], ["--x-y=false"]),
        ("--flag=1", ["--x-y=1"], ["--x-y=0"]),
        ("--flag ja/nein", ["--x-y", "ja"], ["--x-y", "nein"]),
        ("--flag True/''", ["--x-y", "True"], ["--x-y", ""]),
    ],
)
def test_forms_of_booleans(form: str, on: list[str], off: list[str]) -> None:
    for booleans in (form, {"x-y": form}):
        arguments = Arguments.of({"booleans": booleans})
        assert [arguments_of({"x-y": value}, arguments) for value in (True, False)] == [on, off]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("words", ["--sizes", "64", "-0.00001"]),
        ("repeated", ["--sizes", "64", "--sizes=-1e-05"]),
        ("comma", ["--sizes", "64,-1e-05"]),
        ("spaces", ["--sizes", "64 -1e-05"]),
        ("json", ["--sizes", "[64, -1e-05]"]),
    ],
)
def test_forms_of_lists(form: str, expected: list[str]) -> None:
    assert arguments_of({"sizes": [64, -1e-05]}, Arguments.of({"lists": form})) == expected
    assert arguments_of({"sizes": [64, -1e-05]}, Arguments.of({"lists": {"sizes": form}})) == expected


def test_values_alone_stand_first_and_behind_two_dashes_where_they_look_like_options(declare: Declare) -> None:
    text = """
import argparse
p = argparse.ArgumentParser(); p.add_argument("data"); p.add_argument("more", nargs="*"); p.add_argument("--lr")
"""
    parser: dict[str, Any] = {}
    exec(text, parser)
    for values in ({"lr": 0.1, "more": ["a", "b"], "data": "x"}, {"lr": 0.1, "data": "-x", "more": []}):
        received = vars(parser["p"].parse_args(arguments_of(values, None, declare(text))))
        assert received == {**values, "lr": "0.1"}
    assert arguments_of({"lr": 1, "cmd": "fit"}, Arguments.of({"positional": ["cmd"]})) == ["fit", "--lr", "1"]


def test_a_subcommand_stands_between_the_program_s_options_and_its_own(declare: Declare) -> None:
    text = """
import argparse
p = argparse.ArgumentParser(); p.add_argument("--verbose", action="store_true")
commands = p.add_subparsers(dest="command")
fit = commands.add_parser("fit"); fit.add_argument("--lr", type=float); fit.add_argument("--fast", action="store_true")
"""
    program: dict[str, Any] = {}
    exec(text, program)
    values = {"lr": 0.5, "fast": True, "command": "fit", "verbose": True}
    words = arguments_of(values, None, declare(text))
    assert words == ["--verbose", "fit", "--lr", "0.5", "--fast"]
    assert vars(program["p"].parse_args(words)) == values


PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-. ", max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(PLAIN)
@settings(max_examples=examples(200))
def test_a_file_says_in_yaml_and_in_json_what_the_configuration_does(value: Any) -> None:
    given = {"optim.lr": 1e-05, "x": value}
    expected = {"optim": {"lr": 1e-05}, "x": value}
    assert json.loads(file_text("config.json", given)) == expected
    assert YAML(typ="safe", pure=True).load(file_text("config.yaml", given)) == expected


@given(PLAIN)
@settings(max_examples=examples(200))
def test_an_old_reader_of_yaml_reads_the_same(value: Any) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(file_text("config.yaml", {"lr": 1e-05, "x": value})) == {"lr": 1e-05, "x": value}


HYDRAS = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)

HYDRA = "import hydra\n@hydra.main(config_path='conf', config_name='config')\ndef main(cfg): ...\n"
OMEGACONF = "from omegaconf import OmegaConf\ncfg = OmegaConf.from_cli()\n"


def test_hydra_and_omegaconf_are_given_overrides_without_being_told(declare: Declare) -> None:
    values = {
        "optim.lr": 1e-05,
        "nesterov": True,
        "name": "adam w",
        "path": "/data/x.csv",
        "yes": "yes",
        "seven": "7",
        "nothing": None,
        "sizes": [1, 2],
        "inner": {"a": [True, "b c"]},
    }
    expected = [
        *("optim.lr=1e-05", "nesterov=true", "name='adam w'", "path=/data/x.csv", "yes='yes'", "seven='7'"),
        *("nothing=null", "sizes=[1,2]", "inner={a: [true,'b c']}"),
    ]
    assert arguments_of(values, None, declare(HYDRA)) == expected
    assert arguments_of(values, None, declare(OMEGACONF)) == expected
    assert arguments_of({"lr": 1}, Arguments.of("++name=value"), declare(HYDRA)) == ["++lr=1"]
    assert arguments_of({"a": "it's", "b": "x\\"}, None, declare(HYDRA)) == [r"a='it\'s'", "b='x\\\\'"]
    assert arguments_of({"a": "it's\n"}, None, declare(OMEGACONF)) == ['a="it\'s\\x0a"']
    own = declare("import sys\ngiven = dict(each.split('=', 1) for each in sys.argv[1:])")
    assert arguments_of({"a": "x y", "b": 1.5}, Arguments.of("name=value"), own) == ["a=x y", "b=1.5"]


INTERPOLATION = "$"


@given(PLAIN)
@settings(max_examples=examples(200))
def test_omegaconf_receives_the_configuration(value: Any) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    if INTERPOLATION in repr(value):
        return
    words = [f"x={override_text(value, yaml=True)}"]
    received = omegaconf.OmegaConf.to_container(omegaconf.OmegaConf.from_dotlist(words))
    assert received == {"x": value}


@given(HYDRAS)
@settings(max_examples=examples(200))
def test_hydra_receives_the_configuration(value: Any) -> None:
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    read = parser.OverridesParser.create().parse_override(f"x={override_text(value, yaml=False)}")
    assert _unquoted(read.value()) == value


def _unquoted(value: Any) -> Any:
    """A value of Hydra's parser, in which quoted text has a class of its own."""
    if isinstance(value, list):
        return [_unquoted(each) for each in value]
    if isinstance(value, dict):
        return {_unquoted(key): _unquoted(each) for key, each in value.items()}
    return getattr(value, "text", value)


def test_an_environment_has_names_as_given_and_in_capitals() -> None:
    values = {"LR": 0.1, "epochs": 4, "batch-size": 8, "rank": 16, "opt": {"a": 1}, "none": None, "fast": True}
    given = given_of(values, Arguments.of("environment"))
    assert given.words == ()
    assert dict(given.environment) == {
        "LR": "0.1",
        "epochs": "4",
        "batch-size": "8",
        "rank": "16",
        "opt": '{"a": 1}',
        "fast": "True",
        "EPOCHS": "4",
        "BATCH_SIZE": "8",
        "OPT": '{"a": 1}',
        "FAST": "True",
    }
    with refuses(ConfigurationError, field="'RANK'", remedy="SM_HP_RANK"):
        given_of({"RANK": 1}, Arguments.of("environment"))


def test_variables_that_a_source_reads_are_set_without_being_told(declare: Declare) -> None:
    declared = declare(
        "import os\nrate, n = os.environ['LEARNING_RATE'], os.getenv('EPOCHS', 4)\nhome = os.environ['HOME']"
    )
    values = {"learning-rate": 0.1, "epochs": 4, "home": "x", "other": 1}
    given = given_of(values, None, declared)
    assert dict(given.environment) == {"LEARNING_RATE": "0.1", "EPOCHS": "4"}
    assert given.words[:2] == ("--learning-rate", "0.1")
    check_arguments({"epochs": True}, Arguments(), declared, "train.py")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--config", ("--config", "/c/config.json")),
        ("--config=", ("--config=/c/config.json",)),
        ("", ("/c/config.json",)),
    ],
)
def test_a_file_is_named_by_its_option(option: str, words: tuple[str, ...]) -> None:
    arguments = Arguments.of({"style": "file", "file": {"name": "config.json", "option": option}})
    given = given_of({"lr": 0.1, "opt.name": "adam"}, arguments, folder="/c")
    assert given.words == words
    assert {name: json.loads(text) for name, text in given.files.items()} == {
        "config.json": {"lr": 0.1, "opt": {"name": "adam"}}
    }


def test_what_is_wrong_with_arguments_is_one_error() -> None:
    def made(given: object) -> Callable[[], object]:
        return lambda: Arguments.of(given)

    def written(values: dict[str, Any], given: object = None) -> Callable[[], object]:
        return lambda: arguments_of(values, Arguments.of(given))

    refuses_each(
        [
            (made("--name:value"), ("arguments", "--name:value", "'--name=value'")),
            (made(3), ("arguments", 3, "style", "booleans")),
            (made({"stile": "file"}), ("arguments", "'stile'", "'style'")),
            (made({"booleans": "flag"}), ("booleans", "'flag'", "--flag/--no-flag")),
            (made({"booleans": {"x": "--flag maybe"}}), ("booleans", "'x'", "--flag maybe", "--flag yes/no")),
            (made({"booleans": {"x": True}}), ("booleans", "'x'", True, "--flag")),
            (made({"lists": "commas"}), ("lists", "'commas'", "'comma'")),
            (made({"positional": "data"}), ("positional", "'data'", "list")),
            (made({"style": "file"}), ("file", "config.yaml", "--config")),
            (made({"style": "file", "file": {"name": "a/b.yaml"}}), ("file", "a/b.yaml", "config.yaml")),
            (made({"style": "file", "file": {"name": "b.toml"}}), ("file", "b.toml", "config.yaml")),
            (made({"file": {"name": "b.yaml"}}), ("file", "b.yaml", "style")),
            (written({"x": {"a b": 1}}, "name=value"), ("'x'", "'a b'", "dot")),
            (written({"--lr": 1}), ("'--lr'", "'lr'")),
            (written({"x": ["-a"]}, {"lists": "words"}), ("'x'", "-a", "lists", "json")),
            (written({"x": ["a,b"]}, {"lists": "comma"}), ("'x'", "a,b", "json")),
            (
                written({"a": 1, "a.b": 2}, {"style": "file", "file": {"name": "c.yaml"}}),
                ("'a.b'", "'a'"),
            ),
            (
                lambda: check_names(["lr", "fast"], Arguments.of({"booleans": {"fasst": "--flag"}})),
                ("booleans", "'fasst'", "'fast'"),
            ),
            (lambda: check_names(["lr"], Arguments.of({"positional": ["data"]})), ("positional", "'data'", "lr")),
        ],
        ConfigurationError,
    )


@pytest.mark.parametrize(
    "given",
    [
        None,
        "name=value",
        {"booleans": "--flag", "lists": {"a": "comma"}},
        {"style": "file", "file": {"name": "a.json"}},
    ],
)
def test_the_record_makes_the_same_arguments(given: Any) -> None:
    made = Arguments.of(given)
    assert Arguments.of(made.to_json()) == made
    assert json.loads(json.dumps(made.to_json())) == given


def test_what_is_not_finite_is_read_back(argparse_program: tuple[argparse.ArgumentParser, ProgramOptions]) -> None:
    parser, declared = argparse_program
    assert math.isnan(parser.parse_args(arguments_of({"lr": math.nan}, None, declared)).lr)
    assert parser.parse_args(arguments_of({"lr": -math.inf}, None, declared)).lr == -math.inf


def test_switches_of_training_arguments_have_the_form_of_their_parser(declare: Declare) -> None:
    found = declare("""
from transformers import HfArgumentParser, TrainingArguments
parser = HfArgumentParser((TrainingArguments,))
""")
    values = {"do_train": True, "do_eval": False, "use_cpu": True}
    check_arguments(values, Arguments(), found, "train.py")
    assert arguments_of(values, None, found) == ["--do_train", "True", "--do_eval", "False", "--use_cpu", "True"]
