"""The suite itself: tests say what they need, and share what they share through tests/support."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import needs

ROOT = Path(__file__).resolve().parents[1]

TESTS = """
    import multiprocessing, subprocess, sys, time

    import pytest

    def test_a_process():
        subprocess.run([sys.executable, "-c", ""])

    @pytest.mark.process
    def test_a_process_with_its_mark():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_spawned_process():
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
        process.join()

    @pytest.mark.process
    def test_a_program_of_the_system():
        subprocess.run(["mount"], capture_output=True)

    @pytest.mark.system
    def test_a_program_of_the_system_with_its_mark():
        subprocess.run(["mount"], capture_output=True)

    @pytest.fixture(scope="module")
    def shared():
        subprocess.run([sys.executable, "-c", ""])

    def test_a_fixture_that_starts_a_process(shared):
        pass

    def test_a_fixture_that_an_earlier_test_started(shared):
        pass

    def test_a_long_sleep():
        time.sleep(0.3)

    def test_a_long_computation():
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass

    @pytest.mark.process
    def test_a_long_test_with_a_mark():
        time.sleep(0.3)

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

PLUGIN = """
    from tests.support import needs

    needs.UNIT_SECONDS = 0.25
    pytest_plugins = ["tests.support.needs"]
"""


@pytest.mark.process
def test_a_test_that_takes_more_than_its_marks_say_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("\n".join(line[4:] for line in PLUGIN.splitlines()))
    for name, tests in (("test_all.py", TESTS), ("test_others.py", OTHERS)):
        (tmp_path / name).write_text("\n".join(line[4:] for line in tests.splitlines()))
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "--tb=line",
            f"--rootdir={tmp_path}",
            "-p",
            "no:xdist",
            "test_all.py",
            "test_others.py",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    outcome = dict(line.split(" ", 1)[::-1] for line in summary(ended.stdout))
    assert outcome == {
        "test_a_process": "FAILED",
        "test_a_process_with_its_mark": "PASSED",
        "test_a_spawned_process": "FAILED",
        "test_a_program_of_the_system": "FAILED",
        "test_a_program_of_the_system_with_its_mark": "PASSED",
        "test_a_fixture_that_starts_a_process": "FAILED",
        "test_a_fixture_that_an_earlier_test_started": "FAILED",
        "test_a_long_sleep": "FAILED",
        "test_a_long_computation": "FAILED",
        "test_a_long_test_with_a_mark": "PASSED",
        "test_nothing": "PASSED",
        "test_a_fixture_of_the_same_name": "PASSED",
    }, ended.stdout + ended.stderr
    assert "it started mount: mark it @pytest.mark.system" in ended.stdout
    assert "compute and sleep for" in ended.stdout


def summary(printed: str) -> list[str]:
    """The lines of pytest's summary, without paths and reasons."""
    lines = [line.split(" - ")[0] for line in printed.splitlines() if line.startswith(("PASSED ", "FAILED "))]
    return [f"{outcome} {name.rpartition('::')[2]}" for outcome, name in (line.split(" ", 1) for line in lines)]


def test_what_is_missing_is_said_with_its_remedy() -> None:
    assert needs.remedy(["chromium", "postgresql"]).endswith("apt-get install chromium postgresql")


def test_no_test_module_imports_another() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # Scripts for other processes.
                names = re.findall(r"^ *from (tests\.\S+) import", node.value, re.MULTILINE)
            for name in names:
                assert not name.startswith("tests.") or name.startswith("tests.support"), f"{path} imports {name}"
