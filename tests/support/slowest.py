"""The table of the slowest tests in CONTRIBUTING.md, which `make slowest` writes.

`make test`, `make test-rest` and `make test-long` write the times of their tests, fixtures included, into
.pytest_cache/times.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

ROWS = 30
_BLOCK = re.compile(r"(<!-- slowest tests -->\n).*?(<!-- end -->)", re.DOTALL)


def slowest(reports: Sequence[Path]) -> list[tuple[float, str, str]]:
    """Return the slowest tests of several runs, the slowest first.

    Args:
        reports: JUnit files of pytest, each named after its make target.

    Returns:
        Seconds of the wall, the test as file::name, and the command that runs it, of the tests that passed.
    """
    rows = []
    for report in reports:
        target = report.stem.removesuffix("-postgresql").removesuffix("-properties")
        try:
            cases = list(ElementTree.parse(report).iter("testcase"))
        except ElementTree.ParseError as error:
            sys.exit(f"{report} is no whole report ({error}): run make {target} again, or delete it")
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                continue  # It may have waited for a deadline.
            parts = case.get("classname", "").split(".")
            module = next((at for at, part in enumerate(parts, 1) if part.startswith("test_")), len(parts))
            test = "::".join(["/".join(parts[:module]) + ".py", *parts[module:], case.get("name", "")])
            rows.append((float(case.get("time", 0)), test, f"make {target}"))
    return sorted(rows, key=lambda row: -row[0])[:ROWS]


def table(reports: Sequence[Path]) -> str:
    """Return the table in Markdown."""
    rows = ["| seconds | test | command |", "|---|---|---|"]
    rows += [f"| {seconds:.0f} | `{escaped(test)}` | `{command}` |" for seconds, test, command in slowest(reports)]
    return "\n".join(rows) + "\n"


def escaped(test: str) -> str:
    """Return a test's name as a cell of a Markdown table can hold it."""
    return " ".join(test.replace("|", r"\|").replace("`", "'").split())


def main(page: Path, reports: Sequence[Path]) -> None:
    """Write the table into a page, between its markers.

    Args:
        page: a Markdown file with the markers `<!-- slowest tests -->` and `<!-- end -->`.
        reports: JUnit files of pytest.

    Raises:
        SystemExit: the page has no markers, or there is no report.
    """
    text = page.read_text(encoding="utf-8")
    if not reports or not _BLOCK.search(text):
        sys.exit(f"{page} needs the markers of the table, and {list(map(str, reports))} a report: run make test first")
    page.write_text(_BLOCK.sub(lambda block: block[1] + table(reports) + block[2], text), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
