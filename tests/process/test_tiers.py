"""A test that takes more than its tier permits fails, and the failure names the mark to add."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.refusals import mentions

ROOT = Path(__file__).resolve().parents[2]

UNIT = """
    import multiprocessing, subprocess, sys, threading, time

    import pytest

    def test_a_process():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_spawned_process():
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
        process.join()

    @pytest.fixture(scope="module")
    def shared():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_fixture_that_starts_a_process(shared):
        pass

    def test_a_fixture_that_an_earlier_test_started(shared):
        pass

    def test_a_long_sleep():
        time.sleep(0.4)

    def test_a_long_computation():
        end = time.process_time() + 0.4
        while time.process_time() < end:
            pass

    @pytest.fixture(scope="module")
    def slow():
        end = time.process_time() + 0.4
        while time.process_time() < end:
            pass

    def test_a_slow_shared_fixture_is_no_fault_of_the_first_test(slow):
        pass

    @pytest.fixture(scope="module")
    def loaded():
        import slow_module

    def test_an_import_is_not_counted_twice(loaded):
        end = time.process_time() + 0.4
        while time.process_time() < end:
            pass

    def test_a_thread_that_sleeps_is_no_fault_of_the_test_that_started_it():
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

    @pytest.mark.filterwarnings("error:::test_all")
    def test_a_warning_of_an_import_is_the_importers():
        with pytest.raises(DeprecationWarning):
            import old_module

    def test_a_whole_job(tmp_path, monkeypatch):
        monkeypatch.setenv("WARMBAND_HOME", str(tmp_path))
        from tests.support.bad_input import GOOD, make
        make(0).fit({"train": GOOD, "validation": GOOD})

    def test_nothing():
        pass
"""

OTHERS = """
    import pytest

    @pytest.fixture
    def shared():
        pass

    def test_a_fixture_of_the_same_name(shared):
        pass
"""

PROCESS = """
    import subprocess, sys, time

    def test_a_process_in_its_tier():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_program_of_the_system():
        subprocess.run(["mount"], capture_output=True)

    def test_a_long_test_in_its_tier():
        time.sleep(0.4)
"""

SYSTEM = """
    import subprocess

    def test_a_program_of_the_system_in_its_tier():
        subprocess.run(["mount"], capture_output=True)
"""

OUTCOMES = {
    "test_a_process": "process",
    "test_a_process_in_its_tier": "",
    "test_a_spawned_process": "process",
    "test_a_program_of_the_system": "system",
    "test_a_program_of_the_system_in_its_tier": "",
    "test_a_fixture_that_starts_a_process": "process",
    "test_a_fixture_that_an_earlier_test_started": "process",
    "test_a_long_sleep": "job",
    "test_a_long_computation": "job",
    "test_a_long_test_in_its_tier": "",
    "test_a_slow_shared_fixture_is_no_fault_of_the_first_test": "",
    "test_an_import_is_not_counted_twice": "job",
    "test_a_thread_that_sleeps_is_no_fault_of_the_test_that_started_it": "",
    "test_a_warning_of_an_import_is_the_importers": "",
    "test_a_whole_job": "job",
    "test_nothing": "",
    "test_a_fixture_of_the_same_name": "",
}
"""The mark that each failure has to name; empty for tests that pass."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(line[4:] for line in text.splitlines()))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on test modules of a project of their own."""
    (folder / "conftest.py").write_text('pytest_plugins = ["tests.support.tiers"]\n')
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", f"--rootdir={folder}", "-p", "no:xdist", *arguments],
        cwd=folder,
        env={"COLUMNS": "300", "PYTHONPATH": f"{ROOT}:{folder}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_test_that_takes_more_than_its_tier_permits_fails_and_names_the_mark(tmp_path: Path) -> None:
    for name, tests in (
        ("unit/test_all.py", UNIT),
        ("unit/test_others.py", OTHERS),
        ("process/test_processes.py", PROCESS),
        ("system/test_programs.py", SYSTEM),
    ):
        write(tmp_path / "tests" / name, tests)
    (tmp_path / "slow_module.py").write_text(
        "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n"
    )
    (tmp_path / "old_module.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n")
    ended = run(tmp_path, "tests")
    outcome = {}
    for line in ended.stdout.splitlines():
        if line.startswith(("PASSED ", "FAILED ")):
            word, _, rest = line.partition(" ")
            name, _, reason = rest.partition(" - ")
            outcome[name.rpartition("::")[2]] = (
                "" if word == "PASSED" else reason.partition("mark it ")[2].split(" ")[0]
            )
    assert outcome == OUTCOMES, ended.stdout + ended.stderr


def test_a_test_without_its_mark_fails_and_names_it(tmp_path: Path) -> None:
    test = "    import pytest\n\n{}    def test_it():\n        pass\n"
    for file, mark in (
        ("test_lost.py", ""),
        ("other/test_elsewhere.py", ""),
        ("unit/test_marked.py", "    @pytest.mark.ray\n"),
        (
            "unit/test_fixture.py",
            "    @pytest.fixture\n    def postgres():\n        pass\n\n    @pytest.mark.usefixtures('postgres')\n",
        ),
    ):
        write(tmp_path / "tests" / file, test.format(mark))
    ended = run(tmp_path, "tests")
    lines = [line for line in ended.stdout.splitlines() if line.startswith("ERROR ")]
    for names in (
        ("test_lost.py::test_it", "mark", "unit", "process", "ray"),
        ("test_elsewhere.py::test_it", "mark", "unit", "process", "ray"),
        ("test_marked.py::test_it", "mark it ray", "tests/ray/"),
        ("test_fixture.py::test_it", "postgres", "mark it system", "tests/system/"),
    ):
        mentions(next(line for line in lines if names[0] in line), *names)


def test_a_missing_program_ends_the_run_before_its_first_test(tmp_path: Path) -> None:
    write(tmp_path / "tests/system/test_programs.py", SYSTEM)
    write(
        tmp_path / "hide.py",
        "    import tests.support.tiers\n\n    tests.support.tiers.missing = lambda: ['chromium']\n",
    )
    ended = run(tmp_path, "-p", "hide", "tests/system")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout
    mentions(ended.stdout + ended.stderr, "apt-get install chromium")
    assert "PASSED" not in ended.stdout
