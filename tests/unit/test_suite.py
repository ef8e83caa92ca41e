"""The tools of the suite: checks of messages, and the table of the slowest tests."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from tests.support import slowest
from tests.support.programs import remedy
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from trainers import ConfigurationError


def test_the_remedy_of_missing_programs_is_a_command() -> None:
    mentions(remedy(["chromium", "postgresql"]), "apt-get install chromium postgresql")


@pytest.mark.parametrize(
    ("text", "names", "missing"),
    [
        ("max_jobs is 0; give 1 to 100,000", ("max_jobs", 0, 1, "100,000"), []),
        ("max_jobs is 10", (1,), ["1"]),
        ("x is 1.5.", (1, 5, 1.5), ["1", "5"]),
        ("learning_beta", ("beta", "eta"), ["beta", "eta"]),
        ("eta is -0.1", (-0.1, "ETA"), []),
        ("a 'Log'; did", ("Log", "'log'", '"log"'), ['"log"']),
        ("two\nlines", ("two lines",), []),
        ("eta is -1, 1e-5 or 1-7", (1, 5, 7), ["5"]),
        ("from -1 to 1e-5", (1, 5), ["1", "5"]),
        ("one of [0,1] or 100,000", (0, 1, 100000, 100, "000"), ["100", "000"]),
        ("give --max-jobs-per-hour", ("--max-jobs", "-hour", "--max-jobs-per-hour"), ["--max-jobs", "-hour"]),
        ("eta is 'a\\nb' or 1", ("a\nb", 1.0), []),
    ],
)
def test_names_are_found_as_a_whole_and_in_any_order(text: str, names: tuple[object, ...], missing: list[str]) -> None:
    assert missing_names(text, *names) == missing
    assert missing_names(text, *reversed(names)) == missing[::-1]


def test_an_error_without_the_field_the_value_or_the_remedy_is_no_refusal() -> None:
    def refuse(text: str) -> None:
        raise ConfigurationError(text)

    with refuses(ConfigurationError, field="eta", value=0, remedy="Logarithmic") as caught:
        refuse("give a min_value above 0 or no 'Logarithmic' scale for eta")
    assert isinstance(caught.value, ConfigurationError)
    for text in ("eta is 0", "0 is not Logarithmic", "eta is not Logarithmic", ""):
        with pytest.raises(pytest.fail.Exception), refuses(field="eta", value=0, remedy="Logarithmic"):
            refuse(text)
    for names in ({"field": ""}, {}):
        with pytest.raises(ValueError), refuses(**names):  # noqa: PT011  # Nothing to look for.
            refuse("anything")


def test_a_table_of_refusals_reports_each_failure() -> None:
    def refuse() -> None:
        raise ConfigurationError("eta is 0")

    with pytest.raises(pytest.fail.Exception) as failed:
        refuses_each(
            [
                (refuse, ("eta", 0)),
                (refuse, ("eta", 1)),
                (dict, ("eta",)),
                (lambda: {}["x"], ("eta",)),
                (lambda: pytest.skip("no"), ("eta",)),
            ]
        )
    text = str(failed.value)
    mentions(text, "case 2", "case 3", "case 4", "KeyError", "case 5", "Skipped")
    assert "case 1" not in text
    with pytest.raises(AssertionError):
        refuses_each([])


def test_the_slowest_tests_come_from_the_reports(tmp_path: Path) -> None:
    page, report = tmp_path / "page.md", tmp_path / "test-rest-postgresql.xml"
    page.write_text("before\n<!-- slowest tests -->\nold\n<!-- end -->\nafter\n")
    cases = [("tests.ray.test_a.TestInRay", "test_b[x|y]", 9.4), ("tests.job.test_c", "test_d", 12.0)]
    rows = "".join(f"<testcase classname={quoteattr(c)} name={quoteattr(n)} time='{s}'/>" for c, n, s in cases)
    report.write_text(f"<testsuites><testsuite>{rows}</testsuite></testsuites>")
    slowest.main(page, [report])
    lines = page.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert lines[4:6] == [
        "| 12 | `tests/job/test_c.py::test_d` | `make test-rest` |",
        r"| 9 | `tests/ray/test_a.py::TestInRay::test_b[x\|y]` | `make test-rest` |",
    ]
    report.write_text("")  # A run that was killed.
    for reports in ([], [report]):
        with pytest.raises(SystemExit):
            slowest.main(page, reports)
