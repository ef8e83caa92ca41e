"""A job file and a record run no code that their user has not allowed, and reading one runs none at all."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.processes import printed
from tests.support.refusals import mentions

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
RECURSIVE = "name: &a [*a]\n"
BOUNDED = """
    import resource, sys
    from hpo.job_file.reading import read_job
    from trainers import ConfigurationError

    for path in sys.argv[1:]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        try:
            read_job(path)
        except ConfigurationError as error:
            after = resource.getrusage(resource.RUSAGE_SELF)
            print(len(str(error)), (after.ru_maxrss - before.ru_maxrss) // 1024, int(after.ru_utime - before.ru_utime))
            print(repr(str(error)))
"""
TAG = "tag:yaml.org,2002:python"
HOSTILE = [
    (BOMB, ("10000",)),
    (RECURSIVE, ("20",)),
    ("data: {dataset: digits, dataset: xor}\n", ("data.dataset", "line 1")),
    ("name: !!python/object/apply:os.system ['touch ran']\n", ("name", f"{TAG}/object/apply:os.system")),
    ("name: !!python/name:os.system ''\n", ("name", f"{TAG}/name:os.system")),
    ("data: &d {dataset: digits}\nother: {<<: *d}\n", ("other", "line 2")),
    ("name: " + "x" * 3_000_000 + "\n", ("name",)),
    ("[" * 100_000, ("20",)),
]
"""YAML, and the names in its error."""


def test_hostile_yaml_is_one_short_error_in_bounded_time_and_memory(tmp_path: Path) -> None:
    """In a process of its own, in which what takes the most comes last."""
    paths = [tmp_path / f"{number}.yaml" for number in range(len(HOSTILE))]
    for path, (text, _) in zip(paths, HOSTILE, strict=True):
        path.write_text(text)
    lines = printed(BOUNDED, *map(str, paths), folder=tmp_path, environment={"PATH": "/usr/bin:/bin"}).splitlines()
    for (_, names), numbers, said in zip(HOSTILE, lines[::2], lines[1::2], strict=True):
        length, megabytes, seconds = map(int, numbers.split())
        mentions(ast.literal_eval(said), *names)
        assert length < 2000
        assert megabytes < 300
        assert seconds < 20
    assert not (tmp_path / "ran").exists()
