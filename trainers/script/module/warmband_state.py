"""State of a process that trials share: environment, random generators, switches and threads, as they were before."""

from __future__ import annotations

import functools
import importlib
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any


class State:
    """The state of a process that runs one trial after the other, as it was before the first.

    PyTorch's is kept where PyTorch is loaded: its random generators, its switches, and its process group, which a trial
    neither makes anew nor destroys.
    """

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._threads = set(threading.enumerate())
        self._random = random.getstate()
        self._signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._numpy = _numpy_random().get_state() if _numpy_random() else None
        self._torch = _Torch() if "torch" in sys.modules else None
        self._turn = ExitStack()

    def begin(self, environment: Mapping[str, str]) -> None:
        """Sets all of it for a trial.

        Args:
            environment: the trial's variables, beside those of the process.
        """
        _set_environment({**self._environment, **environment})
        self._turn.enter_context(warnings.catch_warnings())
        random.setstate(self._random)
        if self._numpy is not None:
            _numpy_random().set_state(self._numpy)
        if self._torch is not None:
            self._turn.enter_context(self._torch.turn())

    def end(self) -> list[str]:
        """Puts back what a trial changed; returns what cannot be: threads that it left running, by their names."""
        self._turn.close()
        sys.path[1:] = self._path[1:]
        for number, handler in self._signals.items():
            if handler is not None and signal.getsignal(number) is not handler:
                with suppress(OSError, ValueError):
                    signal.signal(number, handler)
        _end_children()
        return [each.name for each in threading.enumerate() if each not in self._threads and not each.daemon]


class _Torch:
    """PyTorch's state of the process."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._random = torch.get_rng_state()
        if torch.distributed.is_available():
            _ProcessGroup(torch.distributed).stay()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Runs a trial whose draws and switches nobody outside notices."""
        torch = self._torch
        torch.set_rng_state(self._random)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(torch.initial_seed())
        with ExitStack() as stack:
            with suppress(ImportError):  # Of a Python that Warmband is not installed in.
                from trainers.pytorch import switches

                stack.enter_context(switches.kept())
            yield
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


class _ProcessGroup:
    """The default process group stays for all trials, as long as they ask for the same one.

    Args:
        distributed: the module `torch.distributed`, whose functions make and destroy it.
    """

    def __init__(self, distributed: Any) -> None:
        self._module = distributed
        self._init, self._destroy = distributed.init_process_group, distributed.destroy_process_group
        self._asked: tuple[Any, ...] = ()

    def stay(self) -> None:
        """From now on."""

        @functools.wraps(self._init)
        def init_process_group(*args: Any, **kwargs: Any) -> None:
            self._made(*args, **kwargs)

        @functools.wraps(self._destroy)
        def destroy_process_group(group: Any = None) -> None:
            self._left(group)

        self._module.init_process_group = init_process_group
        self._module.destroy_process_group = destroy_process_group

    def _made(self, *args: Any, **kwargs: Any) -> None:
        asked = (args, kwargs)
        if self._module.is_initialized():
            if asked == self._asked:
                return
            self._destroy()
        self._init(*args, **kwargs)
        self._asked = asked

    def _left(self, group: Any) -> None:
        if group is not None and group is not self._module.group.WORLD:
            self._destroy(group)


def _numpy_random() -> Any:
    """NumPy's global generator, which it loads when it is asked for; None where NumPy is not loaded."""
    return importlib.import_module("numpy.random") if "numpy" in sys.modules else None


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


def _end_children() -> None:
    """Kills processes that the trial started and left, but for `multiprocessing`'s tracker, which serves all."""
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError, ValueError):
                facts = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                command = Path(f"/proc/{name}/cmdline").read_bytes()
                if int(facts[1]) == os.getpid() and b"resource_tracker" not in command:
                    os.kill(int(name), signal.SIGKILL)
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        multiprocessing.active_children()  # It forgets those that are over.
