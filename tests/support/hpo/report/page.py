"""A figure with a text in it."""

from __future__ import annotations

from hpo.report import Figure
from hpo.report.pictures.look import canvas, interactive, styled


def picture(title: str) -> Figure:
    @styled
    def still():
        return canvas(title, "what it shows")[0]

    return Figure(name="same", title=title, note=title, interactive=interactive(meta={"text": title}), still=still)
