"""Rough programs that stay loaded: what they do to their process, what they keep, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kept_programs import looping, processes, trained
from tests.support.refusals import mentions
from tests.support.script_programs import values
from trainers import TrialError
from trainers.script.program import ScriptProgram

LEAKS = {
    "output": ("import io, sys; old = sys.stdout; sys.stdout = io.StringIO()", "float(old is not sys.__stdout__)"),
    "closed output": ("import sys; closed = sys.stdout.closed; sys.stdout.close()", "float(closed)"),
    "log handlers": (
        "import logging, sys; log = logging.getLogger('mine'); log.addHandler(logging.StreamHandler(sys.stdout))",
        "float(len(log.handlers) - 1)",
    ),
    "root log": (
        "import logging; old = len(logging.root.handlers); logging.basicConfig(level=logging.DEBUG)",
        "float(old)",
    ),
    "builtins": (
        "import builtins; old = print; builtins.print = lambda *_: None",
        "float(old is builtins.print or 'lambda' in repr(old))",
    ),
    "start method": ("import multiprocessing; multiprocessing.set_start_method('spawn')", "0.0"),
    "alarm": ("import signal; old = signal.setitimer(signal.ITIMER_REAL, 1000)[0]", "old"),
    "hook": ("import sys; old = sys.excepthook; sys.excepthook = print", "float(old is print)"),
    "mask": ("old = os.umask(0o77)", "float(old == 0o77)"),
    "input": ("import sys; closed = sys.stdin.closed; sys.stdin.close()", "float(closed)"),
    "recursion": ("import sys; old = sys.getrecursionlimit(); sys.setrecursionlimit(5000)", "float(old == 5000)"),
    "threads between": ("import torch; torch.set_num_interop_threads(1)", "0.0"),
    "pool": ("import concurrent.futures as all; all.ThreadPoolExecutor(1).submit(len, []).result()", "0.0"),
    "grandchild": (
        "import subprocess as s; child = s.Popen('sleep 3600 & echo $!; wait', shell=True, stdout=s.PIPE)\n"
        "old, json.child = getattr(json, 'child', ''), child.stdout.readline().decode().strip()",
        "float(bool(old) and os.path.exists(f'/proc/{old}/fd/0'))",
    ),
    "memory": (
        "import weakref\nclass Net: pass\ndef cycle(): return net\nnet = Net()\n"
        "old = getattr(json, 'net', lambda: None)() is not None; json.net = weakref.ref(net)",
        "float(old)",
    ),
    "daemon": (
        "import threading; old = getattr(json, 'ident', os.getpid()) == os.getpid() and hasattr(json, 'ident')\n"
        "json.ident = os.getpid(); threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()",
        "float(old)",
    ),
}
"""What a trial leaves behind, and a value that is above 0 where the next one finds it."""


@pytest.mark.parametrize("leak", LEAKS)
def test_a_trial_finds_nothing_of_the_one_before(
    opened: Callable[..., ScriptProgram], tmp_path: Path, leak: str
) -> None:
    before, value = LEAKS[leak]
    program = opened(looping("leaked", before=f"{before}\nleaked = {value}"), keep_loaded=True)
    segments = trained(program, tmp_path, 1, 1, 1)
    assert {value for _, value in values(*segments)} == {0.0}
    assert len(set.union(*map(processes, segments))) == (3 if leak == "daemon" else 1)


ENDS = {
    "exit 0": "sys.exit(0)",
    "fork": "if not os.fork(): sys.exit(0)",
    "fork returns": "os.fork()",
    "no newline": "print('x' * 100, end='')",
    "closes descriptor": "os.close(1)",
    "much output": "print('\\n'.join(['bacc= 0.1 ' * 20] * 100_000))",
}


@pytest.mark.parametrize("end", ENDS)
def test_however_a_turn_ends_the_next_one_is_its_own(
    opened: Callable[..., ScriptProgram], tmp_path: Path, end: str
) -> None:
    program = opened(looping(before="import sys", after=ENDS[end]), keep_loaded=True)
    segments = trained(program, tmp_path, 2, 3, 2)
    assert [step for step, _ in values(*segments)] == [1, 2, 1, 2, 3, 1, 2]
    assert all(each.details.keys() <= {"no_model"} for each in segments)
    assert len(set.union(*map(processes, segments))) == 1


KEPT = {
    "functions without names": (
        "one, two = warmband.keep(lambda: [1])(), warmband.keep(lambda: [2])()",
        "one[0] + two[0]",
        [3, 3],
    ),
    "methods": (
        "class Of:\n    def __init__(self, n): self.n = n\n    def load(self): return [self.n]\n"
        "one, two = warmband.keep(Of(1).load)(), warmband.keep(Of(2).load)()",
        "one[0] + two[0]",
        [3, 3],
    ),
    "partial": (
        "import functools\none, two = (warmband.keep(functools.partial(list, [n]))() for n in (1, 2))",
        "one[0] + two[0]",
        [3, 3],
    ),
    "closures": (
        "def made(n):\n    @warmband.keep\n    def load(): return [n]\n    return load()\n",
        "made(args['n'])[0]",
        [0, 1],
    ),
    "modules as arguments": (
        "import torch\n@warmband.keep\ndef size(net): return net.weight.numel()\n",
        "size(torch.nn.Linear(1, 2)) + size(torch.nn.Linear(1, 3))",
        [5, 5],
    ),
    "modules deep within": (
        "import torch\nclass Box: pass\n@warmband.keep\ndef box():\n    made = Box()\n"
        "    made.net = torch.nn.Linear(1, 1)\n"
        "    made.net.weight.data.fill_(1.0)\n    return made\n"
        "@warmband.keep\ndef nested():\n    net = torch.nn.Linear(1, 1); net.weight.data.fill_(1.0)\n"
        "    return [{'net': net}]\n"
        "nets = [box().net, nested()[0]['net']]\nfor net in nets: net.weight.data.add_(1.0)",
        "sum(net.weight.item() for net in nets)",
        [4, 4],
    ),
    "classes of the program": (
        "import pickle, torch\nscale = 1 + args['n']\nclass Rows:\n    def get(self): return scale\n"
        "class Net(torch.nn.Module):\n    def forward(self): return scale\n"
        "@warmband.keep\ndef rows(): return Rows()\n@warmband.keep\ndef nets(): return [torch.nn.Sequential(Net())]\n"
        "pickle.dumps((rows(), nets()))",
        "isinstance(rows(), Rows) * rows().get() + nets()[0][0]()",
        [2, 4],
    ),
    "tensors": (
        "import torch\n@warmband.keep\ndef rows(): return torch.zeros(3)\n@warmband.keep\n"
        "def same(): return torch.ones(3), [id(args)]\nrows().add_(1)\nsame()[0].sum()",
        "rows()[0].item()",
        [1, 1],
    ),
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_kept_is_what_its_function_would_make(
    opened: Callable[..., ScriptProgram], tmp_path: Path, kept: str
) -> None:
    before, value, expected = KEPT[kept]
    program = opened(looping(value, before=before), keep_loaded=True)
    segments = [trained(program, tmp_path, 1, n=n)[0] for n in (0, 1)]
    assert [value for _, value in values(*segments)] == expected
    assert len(set.union(*map(processes, segments))) == 1


def test_a_program_that_fails_says_why_and_nothing_of_what_python_tears_down(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(looping(before="import torch\nassert not args.get('n'), 'as asked'"), keep_loaded=True)
    trained(program, tmp_path, 1)
    with pytest.raises(TrialError) as caught:
        trained(program, tmp_path, 1, n=1)
    mentions(str(caught.value).partition("\n")[0], "train.py", 1, "AssertionError: as asked")
    assert "Exception ignored" not in str(caught.value)


def test_what_is_used_up_cannot_be_kept(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(
        looping(before="@warmband.keep\ndef rows():\n    yield 1\nlist(rows())"),
        keep_loaded=True,
    )
    with pytest.raises(TrialError) as caught:
        trained(program, tmp_path, 1)
    mentions(str(caught.value).partition("\n")[0], "rows", "generator", "list")


SESSION = """
import json, logging, os, random, sys, threading, time, warmband
from pathlib import Path
import torch
import helper
os.environ["ABOVE"] = "1"
sys.path.append("/above")
random.seed(3); torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
logging.basicConfig(stream=sys.stdout)
threading.Thread(target=time.sleep, args=(20,)).start()
for args in warmband.session():
    import helper as again
    here = [
        os.environ.get("ABOVE") == "1", "/above" in sys.path, torch.get_default_dtype() == torch.float64,
        len(logging.root.handlers) == 1, again is helper, (Path(__file__).parent / "helper.py").exists(),
    ]
    print(here)
    random_value = random.random() + float(torch.rand(1))
    warmband.report({"validation:accuracy": sum(here), "process": os.getpid(), "drawn": random_value})
"""


def test_what_is_above_the_loop_is_there_for_all_trials(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(SESSION, keep_loaded=True, files={"helper.py": ""})
    segments = trained(program, tmp_path, 1, 1, 1)
    assert [value for _, value in values(*segments)] == [6, 6, 6]
    assert len({each.reports[0].metrics["drawn"] for each in segments}) == 1
    assert len(set.union(*map(processes, segments))) == 1


def test_modules_of_its_own_come_before_those_that_are_loaded(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    own = {"random.py": "value = 0.25", "warmband_state.py": "value = 0.5"}
    program = opened(
        looping("random.value + warmband_state.value", before="import random, warmband_state"),
        keep_loaded=True,
        files=own,
    )
    segments = trained(program, tmp_path, 1, 1)
    assert [value for _, value in values(*segments)] == [0.75, 0.75]


def test_a_variable_that_is_set_above_an_import_is_set_there(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "backed.py").write_text("import os; backend = os.environ.get('BACKEND')")
    program = opened(
        "import os\nos.environ['BACKEND'] = 'torch'\nos.environ.setdefault('OTHER', '1')\nimport backed\n"
        + looping("float(backed.backend == 'torch')"),
        keep_loaded=True,
        environment={"PYTHONPATH": str(tmp_path / "library")},
    )
    assert [value for _, value in values(*trained(program, tmp_path, 1, 1))] == [1, 1]


def test_a_program_in_a_folder_finds_the_modules_beside_it(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    folder = tmp_path / "whole" / "programs"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(looping("helper.value", before="import helper; helper.value += 0.25"))
    (folder / "helper.py").write_text("value = 0.25")
    program = opened(source_dir=tmp_path / "whole", entry_point="programs/train.py", keep_loaded=True)
    segments = trained(program, tmp_path, 1, 1)
    assert [value for _, value in values(*segments)] == [0.5, 0.5]
    assert len(set.union(*map(processes, segments))) == 1


LISTENS = """
import argparse, json, os, socket, warmband
parser = argparse.ArgumentParser()
for name in ("epochs", "machines", "rank"):
    parser.add_argument(f"--{name}", required=True)
args = parser.parse_args()
host, _, port = args.machines.rpartition(":")
json.open = [*getattr(json, "open", []), socket.create_server((host, int(port)))]
told = os.environ["WARMBAND_MACHINES"] == args.machines
warmband.report({"validation:accuracy": float(told), "rank": float(args.rank), "process": os.getpid()})
"""


@pytest.mark.parametrize(
    "launcher",
    [
        "{program} --machines {machines} --rank {rank}",
        "sh -c '{program} --rank={rank} --machines={machines}'",
    ],
)
def test_each_trial_has_the_words_behind_the_program_and_a_port_that_nobody_has(
    opened: Callable[..., ScriptProgram], tmp_path: Path, launcher: str
) -> None:
    program = opened(LISTENS, launcher=launcher, keep_loaded=True)
    segments = trained(program, tmp_path, 1, 1, 1)
    assert [each.reports[0].metrics["validation:accuracy"] for each in segments] == [1.0] * 3
    assert all(each.details.keys() <= {"no_model"} for each in segments)
    assert len(set.union(*map(processes, segments))) == 1


JAX = """
clients = []
def is_initialized():
    return clients[-1:] == [True]
def initialize(address, processes=1):
    if clients:
        raise RuntimeError("jax.distributed.initialize() must be called before any JAX calls")
    clients.append(True)
def shutdown():
    clients.append(False)
"""
"""What of JAX's cluster a trial can notice: a process makes it once, and not again where it was shut down."""


def test_a_cluster_of_jax_stays_and_another_one_is_jaxs_own_error(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    package = tmp_path / "packages" / "jax"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from jax import distributed\n")
    (package / "distributed.py").write_text(JAX)
    program = opened(
        looping(
            before="import jax\njax.distributed.initialize('127.0.0.1', processes=args.get('processes', 1))",
            value="float(jax.distributed.is_initialized())",
            after="jax.distributed.shutdown()",
        ),
        keep_loaded=True,
        environment={"PYTHONPATH": str(package.parent)},
    )
    segments = trained(program, tmp_path, 2, 2)
    assert {value for _, value in values(*segments)} == {1.0}
    assert len(set.union(*map(processes, segments))) == 1
    with pytest.raises(TrialError, match="must be called before any JAX calls"):
        trained(program, tmp_path, 1, processes=2)
    assert values(*trained(program, tmp_path, 1)) == [(1, 1.0)]


@pytest.mark.parametrize("kept", [True, False])
def test_a_port_that_another_process_took_is_tried_again_with_another(
    opened: Callable[..., ScriptProgram], tmp_path: Path, kept: bool
) -> None:
    failing = f"""
import os, warmband
taken = {str(tmp_path / "taken")!r}
if not os.path.exists(taken):
    open(taken, "w").write(os.environ["WARMBAND_MACHINES"])
    raise SystemExit("lightgbm.basic.LightGBMError: Binding port 53545 failed")
other = open(taken).read() != os.environ["WARMBAND_MACHINES"]
warmband.report({{"validation:accuracy": float(other)}})
"""
    assert values(*trained(opened(failing, keep_loaded=kept), tmp_path, 1)) == [(1, 1.0)]
