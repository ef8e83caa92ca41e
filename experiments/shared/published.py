"""Options of the published experiments, steps that are done once, and their results."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, Self

import typer
from rich.console import Console

from experiments.shared.benchmark import write
from trainers.cluster import cluster
from trainers.datasets import Dataset, load
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.report import Page, Section

SEED = 1729

# As each of the scripts takes them. Typer reads Optional, not `| None`, out of an alias.
Quick = Annotated[bool, typer.Option("--quick", help="Small data and short runs: minutes on two cores.")]
DataDir = Annotated[Optional[str], typer.Option(help="Folder that holds the data; what is missing is fetched.")]  # noqa: UP045
Seed = Annotated[int, typer.Option(min=0, help="The first seed.")]
Seeds = Annotated[int, typer.Option(min=1, help="How many seeds, one after the other from the first.")]
Repeat = Annotated[int, typer.Option(min=1, help="How often each bank marketing row appears; 100 as published.")]
Out = Annotated[Path, typer.Option(help="Folder for result.json, the page and the pictures.")]
Address = Annotated[Optional[str], typer.Option(help="A running Ray cluster, such as auto; else a private one.")]  # noqa: UP045


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every script is asked for.

    Args:
        quick: small data and short runs.
        data_dir: where the data's files lie.
        seed: the first seed.
        seeds: how many.
        repeat: how often each bank marketing row appears.
        out: folder for everything that is written.
        address: of a running cluster; None starts a private one, or joins that of `RAY_ADDRESS`.
    """

    quick: bool = False
    data_dir: str | None = None
    seed: int = SEED
    seeds: int = 1
    repeat: int = 1
    out: Path
    address: str | None = None

    @property
    def each_seed(self) -> range:
        """The seeds, rising."""
        return range(self.seed, self.seed + self.seeds)

    def bank_marketing(self) -> Dataset:
        """The direct-marketing rows; generated ones for a quick run."""
        name = "bank-marketing-synthetic" if self.quick else "bank-marketing"
        return load(name, data_dir=self.data_dir, repeat=self.repeat)

    def images(self) -> Dataset:
        """MNIST; scikit-learn's digits for a quick run."""
        return load("digits" if self.quick else "mnist", data_dir=self.data_dir)

    @contextmanager
    def cluster(self, cpus: int, steps: Steps, say: Callable[[str], None]) -> Iterator[None]:
        """One Ray for the block, from the first step on that is not done yet.

        Args:
            cpus: logical CPUs that a private one has at least.
            steps: what needs it.
            say: is told what was started.
        """
        if self.address:
            os.environ["RAY_ADDRESS"] = self.address
        with ExitStack() as started:
            steps.before = lambda: started.enter_context(cluster(cpus, say))
            yield


class Steps:
    """Work that is not done again: each step's result is kept, with the settings that it was made with.

    One run at a time uses a folder; what died in the middle left nothing half done.

    Args:
        folder: where they are kept, in `steps/`.
        say: is told of the steps that are found.

    Raises:
        ConfigurationError: another run is using the folder.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.before: Callable[[], object] | None = None
        """Is called once, before the first step that is not done yet."""
        self._folder = folder / "steps"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._say = say
        self._lock = (self._folder / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise ConfigurationError(
                f"another run is writing into {folder}; wait for it, or give another --out"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def do(self, name: str, settings: Mapping[str, Any], work: Callable[[], Any]) -> Any:
        """What `work` gives, as JSON holds it: computed now, or kept from a run with the same settings.

        Args:
            name: of the step, as a file may be called.
            settings: all that its result depends on; another value does it again.
            work: does it. Its result is made of what JSON takes; NaN and infinity are kept.
        """
        path = self._folder / f"{name}.json"
        asked = json.loads(json.dumps(settings, default=str))
        kept = _read(path)
        if kept is not None and kept["settings"] == asked:
            self._say(f"{name}: done before")
            return kept["result"]
        before, self.before = self.before, None
        if before is not None:
            before()
        made = {"settings": asked, "result": work()}
        half = path.with_suffix(".half")
        half.write_text(json.dumps(made, indent=1))
        os.replace(half, path)
        return json.loads(json.dumps(made["result"]))


def finish(options: Options, result: Mapping[str, Any], page: Page, console: Console) -> None:
    """Writes result.json, index.html and the page's pictures, and says where they are.

    Args:
        options: of the run.
        result: all that was measured, as JSON takes it.
        page: shows it.
        console: is told.
    """
    out = options.out
    written = write(out, {"options": {**asdict(options), "out": str(out)}, **result})
    pictures = page.write_pictures(out / "pictures")
    path = page.write(out / "index.html")
    console.print(f"\n{written}: all figures\n{out / 'pictures'}: {len(pictures)} files", soft_wrap=True)
    console.print(f"The page: {path.absolute().as_uri()}", soft_wrap=True)


def titled(sections: Sequence[Section], of: str) -> list[Section]:
    """A job's sections with headings that say whose they are, on a page that holds more."""
    return [replace(section, title=f"{of}: {section.title.lower()}") for section in sections]


def _read(path: Path) -> Any:
    try:
        kept = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None  # Not done, or damaged: then it is done again.
    return kept if isinstance(kept, dict) and kept.keys() == {"settings", "result"} else None
