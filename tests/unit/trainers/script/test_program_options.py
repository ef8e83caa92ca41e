"""Options of a program as its source declares them, for every library that reads command lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainers.script import of_source
from trainers.script.program_options import (
    ProgramOption,
    ProgramOptions,
    Source,
    folder_of,
    launcher_of,
    length_of,
    options_in_help,
    options_of,
    printed_metrics,
)

Read = Callable[..., ProgramOptions]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a program's options; files beside it by their names."""

    def made(text: str, **beside: str) -> ProgramOptions:
        for name, content in {"train.py": text, **{each.replace("__", "/"): beside[each] for each in beside}}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return of_source(Source.read(tmp_path, "train.py"))

    return made


def told(option: ProgramOption | None) -> dict[str, Any]:
    """What is not as in an option that says nothing."""
    assert option is not None
    usual = ProgramOption(name="")
    names = [name for name in ProgramOption.__slots__ if name != "name"]
    return {name: getattr(option, name) for name in names if getattr(option, name) != getattr(usual, name)}


def test_argparse(read: Read) -> None:
    found = read(
        """
import argparse, os
RATES = [0.1, 0.2]
def options(parser):
    parser.add_argument("--lr", "-l", type=float, default=1e-3, help="the  learning\\nrate")
    parser.add_argument("--steps", default=2 ** 10, type=int)
    parser.add_argument("--fast", action="store_true", dest="quick")
    parser.add_argument("--kind", choices=["a", "b"], required=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=[8])
    parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR", "out"))
    parser.add_argument("--rates", default=RATES, action="append")
    parser.add_argument("data", nargs="?")
    parser.add_argument(computed(), type=int)
    parser.add_argument("--version", action="version")
"""
    )
    assert [each.name for each in found.options] == [
        *("lr", "steps", "quick", "kind", "sizes", "model_dir", "rates", "data")
    ]
    assert told(found.find("lr")) == {
        "options": ("--lr", "-l"),
        "kind": "number",
        "default": 1e-3,
        "help": "the learning rate",
        "boolean": "--flag 1",
    }
    assert (found.find("steps") or ProgramOption(name="")).default == 1024
    assert told(found.find("quick")) == {
        "options": ("--fast",),
        "kind": "switch",
        "default": False,
        "boolean": "--flag",
        "bare": True,
        "stored": True,
    }
    assert told(found.find("kind")) == {
        "options": ("--kind",),
        "kind": "choices",
        "choices": ("a", "b"),
        "required": True,
    }
    assert told(found.find("sizes"))["list"] == "words"
    assert told(found.find("model-dir"))["default"] == "out"
    assert told(found.find("rates"))["list"] == "repeated"
    assert told(found.find("data")) == {"positional": True}
    assert {*found.parsers, *found.variables} == {"argparse", "SM_MODEL_DIR"}


def test_arguments_that_another_file_declares(read: Read) -> None:
    found = read(
        "from config.args import parser\nimport helpers\nargs = parser.parse_args()",
        **{"config____init__.py": ""},
        **{"config__args.py": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')"},
        **{"helpers.py": "import config.args"},
    )
    assert [each.name for each in found.options] == ["lr"]


def test_click_and_typer(read: Read) -> None:
    found = read(
        """
from click import option, command, Choice
import click
@command()
@option("--lr", default=0.1, show_default=True, help="rate")
@option("--shuffle/--no-shuffle", default=True)
@option("--on", is_flag=True, default=True)
@option("--kind", type=Choice(["a", "b"]))
@option("-n", "--number", "count", type=int)
@click.argument("path")
def main(**given): ...
"""
    )
    assert [each.name for each in found.options] == ["lr", "shuffle", "on", "kind", "count", "path"]
    with_parameters = read("import click\n@click.command()\n@click.option('--lr', type=float)\ndef main(lr): ...")
    assert [each.options for each in with_parameters.options] == [("--lr",)], "its parameter is no second option"
    assert told(found.find("shuffle"))["boolean"] == "--shuffle/--no-shuffle"
    assert "boolean" not in told(found.find("on")), "no word turns it off"
    assert told(found.find("kind"))["choices"] == ("a", "b")
    assert (told(found.find("n"))["whole"], told(found.find("path"))["positional"]) == (True, True)
    found = read(
        """
import typer
from enum import Enum
from typing import Annotated, List, Optional
class Kind(str, Enum):
    a = "A"
    b = "B"
app = typer.Typer()
@app.command()
def main(data: str, learning_rate: float = 0.1, nesterov: bool = False, layers: List[int] = [1], kind: Kind = Kind.a,
         force: Annotated[bool, typer.Option("--force", help="now")] = False, n: Optional[int] = None,
         epochs: int = typer.Option(3, "--epochs", "-e", help="how long")): ...
"""
    )
    assert told(found.find("learning_rate")) == {"options": ("--learning-rate",), "kind": "number", "default": 0.1}
    assert told(found.find("nesterov"))["boolean"] == "--flag/--no-flag"
    assert told(found.find("force"))["boolean"] == "--flag"
    assert told(found.find("layers"))["list"] == "repeated"
    assert told(found.find("kind"))["choices"] == ("A", "B")
    assert told(found.find("e")) == {
        "options": ("--epochs", "-e"),
        "kind": "number",
        "whole": True,
        "default": 3,
        "help": "how long",
    }
    assert (told(found.find("data"))["positional"], told(found.find("n"))["kind"]) == (True, "number")


def test_absl(read: Read) -> None:
    found = read(
        """
from absl import app, flags
FLAGS = flags.FLAGS
flags.DEFINE_float("lr", 0.1, "rate")
_EPOCHS = flags.DEFINE_integer(name="num_epochs", default=4, help="n")
flags.DEFINE_bool("nesterov", False, "b")
flags.DEFINE_enum("kind", "a", ["a", "b"], "of it")
flags.DEFINE_list("sizes", ["1"], "all")
flags.DEFINE_multi_integer("many", [1], "each")
"""
    )
    assert [(each.name, each.kind, each.default, each.help) for each in found.options] == [
        ("lr", "number", 0.1, "rate"),
        ("num_epochs", "number", 4, "n"),
        ("nesterov", "switch", False, "b"),
        ("kind", "choices", "a", "of it"),
        ("sizes", "list", ["1"], "all"),
        ("many", "list", [1], "each"),
    ]


PARSER = "import argparse\np = argparse.ArgumentParser()\n"
COMMAND = "import click\n@click.command()\n"
PAIR = "p.add_argument('--amp', dest='amp', action='store_true')\np.add_argument('--no-amp', dest='amp', {})\n"
TYPES = {
    "one.py": "def truth(text):\n    return text == 'yes'\n",
    "two.py": "import one\ndef truth(text):\n    return text == '1'\n",
}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"{PARSER}p.add_argument('--amp', action='store_true', default=True)", ""),
        (f"{PARSER}p.add_argument('--amp', action='store_true', default=computed())", ""),
        (f"{PARSER}p.add_argument('--amp', action='store_true')\np.set_defaults(amp=True)", ""),
        (f"{PARSER}p.add_argument('--amp', action='store_false', default=False)", ""),
        (f"{PARSER}p.add_argument('--amp', action='store_const', const=1, default=0)", "--flag"),
        (f"{PARSER}p.add_argument('--amp', action='store_const', const='fp16', default='fp32')", ""),
        (f"{PARSER}p.add_argument('--amp', action='append_const', const=1)", ""),
        (f"{PARSER}p.add_argument('--amp', action='count', default=0)", "--flag"),
        (PARSER + PAIR.format("action='store_false'") + "p.set_defaults(amp=True)", "--amp/--no-amp"),
        (PARSER + PAIR.format("action='store_const', const=False"), "--amp/--no-amp"),
        (f"{PARSER}p.add_argument('--amp', action='store_true')\np.add_argument('--amp', type=bool)", ""),
        (
            f"{PARSER}p.add_argument('--amp', action='store_true')\np.add_argument('--amp', action='store_true')",
            "--flag",
        ),
        (f"{PARSER}import other\np.add_argument('--amp', type=bool)", ""),
        (f"{PARSER}p.add_argument('--amp', type=bool, choices=[True, False])", "--flag True/''"),
        (f"{PARSER}import one\nfrom two import truth\np.add_argument('--amp', type=truth)", "--flag 1"),
        (f"{PARSER}import one\nfrom two import *\np.add_argument('--amp', type=truth)", ""),
        ("from jsonargparse import ArgumentParser as A\nA().add_argument('--amp', type=bool)", "--flag true"),
        (f"{COMMAND}@click.option('--amp', is_flag=True, default=computed())\ndef main(amp): ...", ""),
        (f"{COMMAND}@click.option('--amp', count=True)\ndef main(amp): ...", "--flag"),
        (f"{COMMAND}@click.option(' /--no-amp', 'amp', default=True)\ndef main(amp): ...", "/--no-amp"),
        (
            f"{COMMAND}@click.option('--amp', 'amp', flag_value=True)\n"
            "@click.option('--fp32', 'amp', flag_value=False, default=True)\ndef main(amp): ...",
            "--amp/--fp32",
        ),
        ("import typer\ndef main(amp: bool = typer.Option(True, ' /--fp32')): ...\ntyper.run(main)", "/--fp32"),
    ],
)
def test_the_form_of_a_switch(read: Read, text: str, form: str) -> None:
    """It is empty where a value has no word, or where several declarations tell different forms."""
    other = {"other.py": f"{PARSER}p.add_argument('--amp', action='store_true')"}
    option = read(text, **TYPES, **other).find("amp")
    assert option is not None
    assert option.boolean == form


def test_a_file_of_ml_collections_has_a_flag_for_each_value(read: Read) -> None:
    program = "from ml_collections import config_flags\nconfig_flags.DEFINE_config_file('config', None, 'help')"
    values = "def get_config():\n    c = ConfigDict()\n    c.lr = 0.1\n    c.model.layers = 2\n    c.amp = True\n"
    assert [(each.name, each.default, each.required) for each in read(program).options] == [("config", None, True)]
    found = read(program, **{"configs__default.py": values})
    assert [(each.name, each.default, each.boolean) for each in found.options] == [
        ("config", "configs/default.py", ""),
        ("config.lr", 0.1, ""),
        ("config.model.layers", 2, ""),
        ("config.amp", True, "--flag=true"),
    ]


def test_the_fields_of_transformers_arguments_and_those_without_a_default(read: Read) -> None:
    found = read(
        """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
@dataclass
class Model:
    path: str = field(metadata={"help": "where it is"})
HfArgumentParser((Model, TrainingArguments))
"""
    )
    assert told(found.find("path")) == {"options": ("--path",), "required": True, "help": "where it is"}
    assert told(found.find("learning_rate"))["default"] == 5e-5


DATACLASS = """
from dataclasses import dataclass, field
{imports}
@dataclass
class Optim:
    lr: float = 0.1
    nesterov: bool = False
@dataclass
class Base:
    seed: int = 1
@dataclass
class Config(Base):
    name: str
    optim: Optim = field(default_factory=Optim)
    epochs: int = field(default=3, metadata={{"help": "how long"}})
    layers: list[int] = field(default_factory=lambda: [8, 16])
{call}
"""


@pytest.mark.parametrize(
    ("imports", "call", "names", "boolean", "listed"),
    [
        (
            "from transformers import HfArgumentParser",
            "parser = HfArgumentParser((Config, Optim))",
            ["seed", "name", "optim.lr", "optim.nesterov", "epochs", "layers", "lr", "nesterov"],
            "--flag True",
            "words",
        ),
        (
            "import tyro",
            "config = tyro.cli(Config)",
            ["seed", "name", "optim.lr", "optim.nesterov", "epochs", "layers"],
            "--optim.nesterov/--optim.no-nesterov",
            "words",
        ),
        (
            "from simple_parsing import ArgumentParser",
            "p = ArgumentParser(); p.add_arguments(Config, dest='config')",
            ["seed", "name", "lr", "nesterov", "epochs", "layers"],
            "--flag True",
            "words",
        ),
        (
            "from jsonargparse import CLI",
            "config = CLI(Config)",
            ["seed", "name", "optim.lr", "optim.nesterov", "epochs", "layers"],
            "--flag true",
            "json",
        ),
    ],
)
def test_dataclasses(read: Read, imports: str, call: str, names: list[str], boolean: str, listed: str) -> None:
    found = read(DATACLASS.format(imports=imports, call=call))
    assert [each.name for each in found.options] == names
    assert told(next(each for each in found.options if each.name.endswith("nesterov")))["boolean"] == boolean
    assert told(found.find("layers")) == {"options": ("--layers",), "kind": "list", "default": [8, 16], "list": listed}
    assert (told(found.find("epochs"))["help"], told(found.find("name"))["required"]) == ("how long", True)


def test_functions_of_fire_and_lightning(read: Read) -> None:
    found = read("import fire\ndef train(lr=0.1, fast=False, name: str = 'x'): ...\nfire.Fire(train)")
    assert [(each.name, each.kind) for each in found.options] == [
        ("lr", "number"),
        ("fast", "switch"),
        ("name", "text"),
    ]
    assert told(found.find("fast"))["boolean"] == "--flag=True"
    found = read(
        """
from lightning.pytorch.cli import LightningCLI
class Model:
    def __init__(self, lr: float = 0.1, fast: bool = False): ...
LightningCLI(Model)
"""
    )
    assert [each.name for each in found.options] == ["subcommand", "model.lr", "model.fast"]
    assert (found.boolean, told(found.find("subcommand"))["positional"]) == ("--flag true", True)


def test_hydra_and_omegaconf(read: Read) -> None:
    found = read(
        "import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='config')\ndef main(cfg): ...",
        **{
            "conf__config.yaml": "defaults: [_self_, {optim: adam}]\ntrain: {epochs: 4, fast: false}\nsizes: [1]\n",
            "conf__optim__adam.yaml": "lr: 1e-3\nname: adam\n",
        },
    )
    assert found.style == "name=value"
    assert [(each.name, each.kind, each.default) for each in found.options] == [
        ("optim", "group", "adam"),
        ("optim.lr", "number", 1e-3),
        ("optim.name", "text", "adam"),
        ("train.epochs", "number", 4),
        ("train.fast", "switch", False),
        ("sizes", "list", [1]),
    ]
    found = read(
        "from omegaconf import OmegaConf\ncfg = OmegaConf.merge(OmegaConf.load('c.yaml'), OmegaConf.from_cli())",
        **{"c.yaml": "lr: 0.1\n"},
    )
    assert (found.style, [each.name for each in found.options]) == ("name=value", ["lr"])
    found = read(
        """
import hydra
from dataclasses import dataclass
from hydra.core.config_store import ConfigStore
@dataclass
class Config:
    lr: float = 0.1
ConfigStore.instance().store(name="config", node=Config)
@hydra.main(version_base=None, config_name="config")
def main(cfg): ...
"""
    )
    assert [each.name for each in found.options] == ["lr"]


@pytest.mark.parametrize("text", ["def (", "", "import os", "x = " + "(" * 500, "\0"])
def test_a_source_that_tells_nothing_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert options_of(tmp_path, "train.py").options == ()
    assert options_of(tmp_path, "gone.py").options == ()
    (tmp_path / "run.sh").write_text("python train.py $@")
    assert options_of(tmp_path, "run.sh").options == ()


@pytest.mark.parametrize("changed", ["options.py", "conf/config.yaml", "conf/model/small.yaml", "configs/default.py"])
@pytest.mark.parametrize("there", [True, False])
def test_options_are_read_again_when_any_of_their_files_changed(tmp_path: Path, changed: str, there: bool) -> None:
    files = {
        "train.py": "import hydra, options\nfrom ml_collections import config_flags\n"
        "config_flags.DEFINE_config_file('config', None, 'help')\n"
        "@hydra.main(config_path='conf', config_name='config')\ndef main(cfg): ...\n",
        "options.py": "import argparse\nargparse.ArgumentParser().add_argument('--lr')\n",
        "conf/config.yaml": "defaults: [{model: small}]\nlr: 1\n",
        "conf/model/small.yaml": "lr: 1\n",
        "configs/default.py": "config = dict()\nconfig.lr = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if there or name != changed:
            (tmp_path / name).write_text(text)
    before = options_of(tmp_path, "train.py")
    assert options_of(tmp_path, "train.py") is before
    (tmp_path / changed).write_text(files[changed].replace("lr", "depth"))
    assert options_of(tmp_path, "train.py") != before
    assert any("depth" in each.name for each in options_of(tmp_path, "train.py").options)


def source(folder: Path, text: str) -> Source:
    (folder / "train.py").write_text(text)
    return Source.read(folder, "train.py")


@pytest.mark.parametrize(
    ("text", "names", "line", "value"),
    [
        ("print(f'epoch {epoch + 1} val_acc {acc:.4f}')", ["val_acc"], "epoch 3 val_acc 0.5", ("3", "0.5")),
        ("print('epoch', epoch, 'loss:', loss)", ["loss"], "epoch 3 loss: 1e-05", ("3", "1e-05")),
        (
            "print('Test set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)\\n'.format(loss, right, n, 100 * right))",
            ["Accuracy", "Average_loss"],
            "Test set: Average loss: 1.5e-05, Accuracy: 9/10 (90%)",
            (None, "1.5e-05"),
        ),
        ("logger.info('step %d | val loss %.3f', step, loss)", ["val_loss"], "x step 9 | val loss -1.5", ("9", "-1.5")),
        ("print('epoch %d: auc=%f' % (epoch, auc))", ["auc"], "epoch 1: auc=0.25", ("1", "0.25")),
        (
            "import json; print(json.dumps({'epoch': e, 'val_loss': v}))",
            ["val_loss"],
            '{"epoch": 2, "val_loss": 1.5e-05}',
            ("2", "1.5e-05"),
        ),
        ("print('epoch:% 3d, loss:%8.3f' % (epoch, loss))", ["loss"], "epoch:  1, loss:   0.500", ("1", "0.500")),
        ("print(f'train_acc {a} test_acc {b}')", ["test_acc", "train_acc"], "train_acc 1 test_acc 2", (None, "1")),
        ("print({'eval_acc': v})", ["eval_acc"], "{'eval_acc': 0.5}", (None, "0.5")),
        ("print(f'ppl {ppl:,.2f}, lr {lr}')", ["ppl"], "ppl 1,236.50, lr 3", (None, "1,236.50")),
        ("print(f'[{epoch}/{n}] {top1.avg:.3f}')", [], "", None),
        ("print('hello', name)", [], "", None),
        ("print(*values)", [], "", None),
    ],
)
def test_lines_that_print_metrics(
    tmp_path: Path, text: str, names: list[str], line: str, value: tuple[str | None, str] | None
) -> None:
    found = printed_metrics(source(tmp_path, text))
    assert [each.name for each in found] == names
    if value is not None:
        match = next(matched for each in found[::-1] if (matched := re.search(each.regex, line)))
        assert (match.groupdict().get("step"), match["value"]) == value


def test_keras_prints_a_loss_of_held_out_data_where_it_has_some(tmp_path: Path) -> None:
    fit = "import keras\nmodel.fit(x, y{})"
    [held_out] = printed_metrics(source(tmp_path, fit.format(", validation_split=0.1")))
    [training] = printed_metrics(source(tmp_path, fit.format("")))
    assert (held_out.name, held_out.doubt, training.name) == ("val_loss", "", "loss")
    assert "validation_data" in training.doubt
    found = re.findall(training.regex, "1/1 - 0s - loss: 0.5 - val_loss: 0.25")
    assert found == ["0.5"]


def test_guesses(tmp_path: Path) -> None:
    assert launcher_of(source(tmp_path, "import torch.distributed as dist\ndist.init_process_group()")) == "torchrun"
    assert launcher_of(source(tmp_path, "from accelerate import Accelerator")) == "accelerate"
    assert launcher_of(source(tmp_path, "from mpi4py import MPI")) == "mpirun"
    assert launcher_of(source(tmp_path, "import os; os.environ['TF_CONFIG']")) == "tensorflow"
    assert launcher_of(source(tmp_path, "import torch")) == "python"
    options = [ProgramOption(name=name, kind="number", default=1) for name in ("seed", "max_iters", "train.epochs")]
    assert length_of(options) is options[1]
    assert length_of(options[:1]) is None
    folders = {
        "output_dir": "{model}",
        "save-dir": "{checkpoints}",
        "checkpoint_path": "{checkpoints}",
        "model_dir": "{model}",
        "log_dir": "{output}",
        "data_dir": "",
        "resume_path": "",
        "output_size": "",
    }
    assert {name: folder_of(ProgramOption(name=name)) for name in folders} == folders


def test_options_in_help() -> None:
    argparse = """usage: train.py [-h] [--lr LR]

options:
  -h, --help            show this help message and exit
  --lr LR               learning rate (default: 0.1)
  -n N, --number N      how many
  --kind {a,b}          which
  --fast                be quick
  --ema, --no-ema
"""
    found = {each.name: each for each in options_in_help(argparse)}
    assert list(found) == ["lr", "number", "kind", "fast", "ema"]
    assert told(found["lr"])["default"] == 0.1
    assert told(found["kind"])["choices"] == ("a", "b")
    assert (told(found["fast"])["boolean"], told(found["ema"])["boolean"]) == ("--flag", "--flag/--no-flag")
    click = """Usage: train.py [OPTIONS]

Options:
  --lr FLOAT                [default: 0.1]
  --shuffle / --no-shuffle  whether
  --help                    Show this message and exit.
"""
    assert [each.name for each in options_in_help(click)] == ["lr", "shuffle"]
