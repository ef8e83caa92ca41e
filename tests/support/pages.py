"""A page as a parser reads it."""

from __future__ import annotations

from html.parser import HTMLParser


class Read(HTMLParser):
    """The elements of a page, and the text in each, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.texts.append((tag, ""))
        self.attributes += [value for _, value in attributes if value is not None]

    def handle_data(self, data: str) -> None:
        if self.texts:
            tag, before = self.texts[-1]
            self.texts[-1] = (tag, before + data)

    def of(self, tag: str) -> list[str]:
        return [text for found, text in self.texts if found == tag]
