"""State of a process that trials share: environment, random generators, switches and threads, as they were before."""

from __future__ import annotations

import builtins
import copy
import functools
import importlib
import io
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

THREAD_SECONDS = 1.0
"""How long threads may take to end whose trial is over: a pool's do once it is gone."""


class State:
    """The state of a process that runs one trial after the other, as it was before the first.

    PyTorch's is kept where PyTorch is loaded: its random generators, its switches, and its process group, which a trial
    neither makes anew nor destroys; likewise JAX's cluster.
    """

    def __init__(self) -> None:
        self.output = os.dup(1)
        """The process's own output, wherever a trial leads its descriptor."""
        self._given: Mapping[str, str] = {}
        self._turn, self._above = ExitStack(), ExitStack()
        self._torch = _Torch() if "torch" in sys.modules else None
        if "jax" in sys.modules:
            JaxCluster(importlib.import_module("jax.distributed")).stay()
        self.settle()

    def settle(self) -> None:
        """Takes what the process is now for what it is before each trial, as a loop around trials finds it."""
        self._above.push(self._turn.pop_all())  # What was changed above the loop stays changed.
        self._environment = {name: value for name, value in os.environ.items() if self._given.get(name) != value}
        self._path = list(sys.path)
        self._threads = set(threading.enumerate())
        self._random = random.getstate()
        self._signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._numpy = _numpy_random().get_state() if _numpy_random() else None
        self._streams, self._logs, self._builtins = _Streams(), _Logs(), dict(vars(builtins))
        self._hooks, self._recursion, self._mask = (sys.excepthook, sys.displayhook), sys.getrecursionlimit(), _mask()
        self._start_method = _multiprocessing().get_start_method(allow_none=True) if _multiprocessing() else None
        if self._torch is not None:
            self._torch.settle()

    def begin(self, environment: Mapping[str, str]) -> None:
        """Sets all of it for a trial.

        Args:
            environment: the trial's variables, beside those of the process.
        """
        self._given = environment
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
        sys.path[:] = self._path
        vars(builtins).update(self._builtins)
        sys.excepthook, sys.displayhook = self._hooks
        sys.setrecursionlimit(self._recursion)
        os.umask(self._mask)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._signals.items():
            if handler is not None and signal.getsignal(number) is not handler:
                with suppress(OSError, ValueError):
                    signal.signal(number, handler)
        _end_children()
        if _multiprocessing():
            _multiprocessing().set_start_method(self._start_method, force=True)
        self._logs.put_back()
        self._streams.put_back()
        return self._left()

    def leave(self) -> None:
        """Of a program that failed: without it, Python would say more of what it tears down than of the error."""
        self._turn.close()
        self._above.close()

    def _left(self) -> list[str]:
        """Threads of a trial; those of packages that end with their process do no harm, those of its own report."""
        deadline = time.monotonic() + THREAD_SECONDS
        left = []
        for each in threading.enumerate():
            own = "__main__" in (type(each).__module__, getattr(getattr(each, "_target", None), "__module__", ""))
            if each not in self._threads and (own or not each.daemon):
                each.join(max(0.0, deadline - time.monotonic()))
                left += [each.name] if each.is_alive() else []
        return left


class _Streams:
    """Output of the process: Python's, and the system's below it."""

    def __init__(self) -> None:
        self._streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
        self._descriptors = {number: os.dup(number) for number in (1, 2)}

    def put_back(self) -> None:
        """Writes what is to be written, and leads all of it where it went."""
        for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()  # type: ignore[union-attr]  # AttributeError: a process without one
        for number, descriptor in self._descriptors.items():
            os.dup2(descriptor, number)
        for name, stream in self._streams.items():
            if getattr(stream, "closed", False) and name == "stdin":
                self._streams[name] = io.TextIOWrapper(io.FileIO(os.devnull))
            elif getattr(stream, "closed", False):
                number = ("stdout", "stderr").index(name) + 1
                raw = io.FileIO(number, "w", closefd=False)
                self._streams[name] = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "replace", line_buffering=True)
            setattr(sys, name, self._streams[name])


class _Logs:
    """Loggers, with their handlers: one that a trial adds twice writes each line, and each metric, twice."""

    def __init__(self) -> None:
        self._before = {each: self._of(each) for each in _loggers()}

    def put_back(self) -> None:
        """Closes handlers that are new."""
        known = {handler for facts in self._before.values() for handler in facts["handlers"]}
        for each in _loggers():
            for handler in each.handlers:
                if handler not in known:
                    with suppress(Exception):  # Whatever a class of a user's raises.
                        handler.close()
            vars(each).update(self._of(each, self._before.get(each, _NEW)))
            each.setLevel(each.level)  # It forgets which levels are enabled.

    @staticmethod
    def _of(logger: logging.Logger, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        facts = vars(logger) if given is None else given
        return {name: copy.copy(facts[name]) for name in _NEW}


_NEW: dict[str, Any] = {"handlers": [], "filters": [], "level": logging.NOTSET, "propagate": True, "disabled": False}
"""A logger's state that is new."""


def _loggers() -> list[logging.Logger]:
    root = logging.getLogger()
    return [root, *(each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger))]


class _Torch:
    """PyTorch's state of the process."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        _once(torch)
        if torch.distributed.is_available():
            _ProcessGroup(torch.distributed).stay()

    def settle(self) -> None:
        """See `State.settle`."""
        self._random = self._torch.get_rng_state()

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


def _once(torch: Any) -> None:
    """Lets each trial set the number of threads between operators, which PyTorch lets a process do once."""
    original = torch.set_num_interop_threads

    @functools.wraps(original)
    def set_num_interop_threads(nthreads: int) -> None:
        if torch.get_num_interop_threads() != nthreads:
            original(nthreads)

    torch.set_num_interop_threads = set_num_interop_threads


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


class JaxCluster:
    """JAX's cluster, which a process makes once, before its first computation: it stays for all trials.

    Args:
        distributed: the module `jax.distributed`, whose functions make it and shut it down.
    """

    def __init__(self, distributed: Any) -> None:
        self._module, self._initialize = distributed, distributed.initialize
        self._asked: tuple[Any, ...] = ()

    def stay(self) -> None:
        """From now on; it ends with the process."""

        @functools.wraps(self._initialize)
        def initialize(*args: Any, **kwargs: Any) -> None:
            if not self._module.is_initialized() or self._asked != (args, kwargs):
                self._initialize(*args, **kwargs)
                self._asked = (args, kwargs)

        @functools.wraps(self._module.shutdown)
        def shutdown() -> None:
            pass

        self._module.initialize, self._module.shutdown = initialize, shutdown


def _numpy_random() -> Any:
    """NumPy's global generator, which it loads when it is asked for; None where NumPy is not loaded."""
    return importlib.import_module("numpy.random") if "numpy" in sys.modules else None


def _multiprocessing() -> Any:
    """The module, where it is loaded."""
    return sys.modules.get("multiprocessing")


def _mask() -> int:
    """That of files which are made; it is only told where another one is set."""
    os.umask(mask := os.umask(0o77))
    return mask


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


def _end_children() -> None:
    """Kills processes that the trial started and left, but for `multiprocessing`'s tracker, which serves all."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError, ValueError, IndexError):
                facts = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                if b"resource_tracker" not in Path(f"/proc/{name}/cmdline").read_bytes():
                    children.setdefault(int(facts[1]), []).append(int(name))
    left = list(children.get(os.getpid(), []))
    for each in left:  # It grows by theirs.
        left += children.get(each, [])
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)
    if _multiprocessing():
        _multiprocessing().active_children()  # It forgets those that are over.
