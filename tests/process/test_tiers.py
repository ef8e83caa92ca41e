"""A test that takes more than its tier permits fails, and the failure names the mark to add."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.refusals import mentions

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
    import subprocess, sys

    import pytest

    @pytest.fixture(scope="session")
    def of_the_session():
        subprocess.run([sys.executable, "-c", ""])
"""

UNIT = """
    import asyncio, multiprocessing, select, subprocess, sys, threading, time

    import pytest

    def compute(seconds=0.3):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

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

    def test_a_fixture_that_is_asked_for_late(request):
        request.getfixturevalue("shared")

    def test_a_fixture_of_the_session_that_starts_a_process(of_the_session):
        pass

    class TestOne:
        @pytest.fixture(scope="class")
        @classmethod
        def of_a_class(cls):
            subprocess.run([sys.executable, "-c", ""])

        def test_a_fixture_of_a_class_that_starts_a_process(self, of_a_class):
            pass

    class TestOneMore:
        @pytest.fixture
        def of_a_class(self):
            pass

        def test_a_fixture_of_a_class_whose_name_begins_alike(self, of_a_class):
            pass

    def test_a_long_sleep():
        time.sleep(0.3)

    def test_a_wait_for_an_event_that_runs_out():
        threading.Event().wait(timeout=0.3)

    def test_a_wait_for_a_thread_that_runs_out():
        thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
        thread.start()
        thread.join(0.3)

    def test_a_wait_of_select_that_runs_out():
        select.select([], [], [], 0.3)

    def test_a_long_sleep_of_asyncio():
        asyncio.run(asyncio.sleep(0.3))

    def test_waits_that_something_ends():
        thread, event = threading.Thread(target=time.sleep, args=(0.01,)), threading.Event()
        thread.start()
        thread.join(60)
        threading.Timer(0.01, event.set).start()
        event.wait(60)

    def test_a_long_computation():
        compute()

    @pytest.mark.xfail
    def test_a_long_computation_that_fails_as_expected():
        compute()
        assert False

    @pytest.mark.xfail
    def test_a_process_of_a_test_that_fails_as_expected():
        subprocess.run([sys.executable, "-c", ""])
        assert False

    @pytest.mark.xfail
    def test_a_failure_that_is_expected():
        assert False

    def test_a_long_computation_that_ends_in_a_skip():
        compute()
        pytest.skip("not here")

    @pytest.fixture
    def long_to_make():
        compute()

    def test_a_fixture_of_its_own_that_takes_long(long_to_make):
        pass

    @pytest.fixture
    def long_to_take_down():
        yield
        compute()

    def test_a_fixture_of_its_own_that_takes_long_to_take_down(long_to_take_down):
        pass

    @pytest.mark.xfail
    def test_the_taking_down_of_a_test_that_fails_as_expected(long_to_take_down):
        assert False

    @pytest.fixture
    def ends_with_a_process():
        yield
        subprocess.run([sys.executable, "-c", ""])

    def test_a_fixture_of_its_own_that_ends_with_a_process(ends_with_a_process):
        pass

    def test_half_of_the_time_and_a_fixture_that_takes_the_other_half(request):
        request.addfinalizer(lambda: compute(0.15))
        compute(0.15)

    @pytest.fixture(scope="module")
    def slow():
        compute()
        yield
        compute()

    def test_a_slow_shared_fixture_is_no_fault_of_the_first_test(slow):
        pass

    @pytest.fixture(scope="module")
    def loaded():
        import slow_module

    def test_an_import_is_not_counted_twice(loaded):
        compute()

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

    def test_the_taking_down_of_a_shared_fixture_is_no_fault_of_the_last_test():
        pass
"""

OTHERS = """
    import pytest

    @pytest.fixture
    def shared():
        pass

    def test_a_fixture_of_the_same_name(shared):
        pass

    @pytest.fixture
    def of_the_session():
        pass

    def test_a_fixture_in_the_place_of_one_of_the_session(of_the_session):
        pass
"""

LOW = """
    from dataclasses import replace

    from tests.support.tiers import TIERS

    TIERS["unit"] = replace(TIERS["unit"], {limit}={seconds})
"""
"""A lower limit than the tier has: what goes beyond it need not take long."""

SHARED = """
    import time

    import pytest

    @pytest.fixture(scope="session")
    def long_to_make():
        time.sleep(0.6)

    @pytest.fixture(scope="session")
    def long_to_take_down():
        yield
        time.sleep(0.6)

    @pytest.fixture(scope="session")
    def short(long_to_make):
        time.sleep(0.2)

    def test_it_is_set_up(long_to_make):
        pass

    def test_it_was_set_up(short):
        pass

    @pytest.mark.xfail
    def test_it_fails_as_expected(long_to_make):
        assert False

    def test_one_that_takes_long_to_take_down(long_to_take_down):
        pass

    def test_none_of_them():
        pass

    def test_the_last():
        pass
"""

PROCESS = """
    import subprocess, sys, time

    def test_a_process_in_its_tier():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_program_of_the_system():
        subprocess.run(["mount"], capture_output=True)

    def test_a_long_test_in_its_tier():
        time.sleep(0.3)
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
    "test_a_fixture_that_is_asked_for_late": "process",
    "test_a_fixture_of_the_session_that_starts_a_process": "process",
    "test_a_fixture_of_a_class_that_starts_a_process": "process",
    "test_a_fixture_of_a_class_whose_name_begins_alike": "",
    "test_a_long_sleep": "job",
    "test_a_wait_for_an_event_that_runs_out": "job",
    "test_a_wait_for_a_thread_that_runs_out": "job",
    "test_a_wait_of_select_that_runs_out": "job",
    "test_a_long_sleep_of_asyncio": "job",
    "test_waits_that_something_ends": "",
    "test_a_long_computation": "job",
    "test_a_long_computation_that_fails_as_expected": "job",
    "test_a_process_of_a_test_that_fails_as_expected": "process",
    "test_a_failure_that_is_expected": "",
    "test_a_long_computation_that_ends_in_a_skip": "job",
    "test_a_fixture_of_its_own_that_takes_long": "job",
    "test_a_fixture_of_its_own_that_takes_long_to_take_down": "job",
    "test_the_taking_down_of_a_test_that_fails_as_expected": "job",
    "test_a_fixture_of_its_own_that_ends_with_a_process": "process",
    "test_half_of_the_time_and_a_fixture_that_takes_the_other_half": "job",
    "test_a_long_test_in_its_tier": "",
    "test_a_slow_shared_fixture_is_no_fault_of_the_first_test": "",
    "test_an_import_is_not_counted_twice": "job",
    "test_a_thread_that_sleeps_is_no_fault_of_the_test_that_started_it": "",
    "test_a_warning_of_an_import_is_the_importers": "",
    "test_a_whole_job": "job",
    "test_the_taking_down_of_a_shared_fixture_is_no_fault_of_the_last_test": "",
    "test_a_fixture_of_the_same_name": "",
    "test_a_fixture_in_the_place_of_one_of_the_session": "",
}
"""The mark that each failure has to name; empty for tests that pass, or fail as expected."""


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
        timeout=600,  # A busy machine makes a minute of ten seconds.
        check=False,
    )


def outcomes(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """By its name what each test failed with, in itself or in its taking down; empty if it did neither."""
    found: dict[str, str] = {}
    for line in ended.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "ERROR", "XFAIL"):
            name, _, reason = rest.rpartition("::")[2].partition(" - ")
            if word in ("FAILED", "ERROR") or name not in found:
                found[name] = reason if word in ("FAILED", "ERROR") else ""
    return found


def test_a_test_that_takes_more_than_its_tier_permits_fails_and_names_the_mark(tmp_path: Path) -> None:
    for name, tests in (
        ("unit/conftest.py", CONFTEST),
        ("unit/test_all.py", UNIT),
        ("unit/test_others.py", OTHERS),
        ("process/test_processes.py", PROCESS),
        ("system/test_programs.py", SYSTEM),
    ):
        write(tmp_path / "tests" / name, tests)
    (tmp_path / "slow_module.py").write_text(
        "import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end: pass\n"
    )
    (tmp_path / "old_module.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n")
    write(tmp_path / "low.py", LOW.format(limit="seconds", seconds=0.07))
    ended = run(tmp_path, "-p", "low", "tests")
    marks = {name: reason.partition("mark it ")[2].split(" ")[0] for name, reason in outcomes(ended).items()}
    assert marks == OUTCOMES, ended.stdout + ended.stderr
    reason = mentions(outcomes(ended)["test_a_long_computation"], "tests/job/", "test_a_long_computation", "0.07 s")
    assert re.search(r"for 0\.[3-5]\d s", reason), reason


def test_a_shared_fixture_that_takes_more_than_its_tier_permits_fails_the_tests_that_use_it(tmp_path: Path) -> None:
    write(tmp_path / "tests/unit/test_shared.py", SHARED)
    write(tmp_path / "low.py", LOW.format(limit="shared", seconds=0.15))
    ended = run(tmp_path, "-p", "low", "tests/unit")
    found = outcomes(ended)
    for name, fixture in (
        ("test_it_is_set_up", "long_to_make"),
        ("test_it_was_set_up", "long_to_make"),
        ("test_it_fails_as_expected", "long_to_make"),
        ("test_the_last", "long_to_take_down"),
    ):
        reason = mentions(found.pop(name), fixture, "unit", "0.15 s", "mark it job", "tests/job/")
        assert re.search(r"for 0\.[6-9]\d s", reason), reason
    assert found == dict.fromkeys(("test_one_that_takes_long_to_take_down", "test_none_of_them"), ""), ended.stdout


def test_a_test_without_its_mark_fails_and_names_it(tmp_path: Path) -> None:
    test = "    import pytest\n\n{}    def test_it():\n        pass\n"
    for file, mark in (
        ("test_lost.py", ""),
        ("other/test_elsewhere.py", ""),
        ("unit/test_marked.py", "    @pytest.mark.ray\n"),
        ("unit/test_expected.py", "    @pytest.mark.ray\n    @pytest.mark.xfail\n"),
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
        ("test_expected.py::test_it", "mark it ray", "tests/ray/"),
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
