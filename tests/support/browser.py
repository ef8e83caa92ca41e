"""A page opened in Chromium."""

from __future__ import annotations

from dataclasses import dataclass, field

from playwright.sync_api import Page


@dataclass
class Opened:
    """A page in a browser, and what it did that a page should not."""

    tab: Page
    url: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def settle(self) -> None:
        """Looks at every picture, and waits until it is drawn."""
        for plot in self.tab.locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for(state="attached")

    def fits(self, width: int) -> None:
        """Waits until the page, which may just have been resized, is as wide as its window."""
        self.tab.wait_for_function("width => document.documentElement.scrollWidth === width", arg=width)

    def column(self, table: str, place: int) -> list[str]:
        """The texts of a table's column, of the rows that can be seen, from top to bottom."""
        cells = self.tab.locator(f"{table} tbody tr > :nth-child({place + 1})")
        return list(cells.evaluate_all("all => all.filter(c => c.checkVisibility()).map(c => c.textContent)"))
