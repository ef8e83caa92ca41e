"""One picture in both its forms: interactive for the page, still for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import plotly.graph_objects as go
from matplotlib.figure import Figure as Still

from hpo.report.pictures.look import PIXELS_AN_INCH, styled


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture.

    Args:
        name: a slug: its files are called so.
        title: what it shows, the finding where there is one; plain text.
        note: how to read it, and how its numbers came about; plain text.
        interactive: for the page. It has no title and a transparent background; `look.TEMPLATES` has its
            layout's template for each colour scheme.
        still: draws it for a file, title and all.
        views: by what each shows, the pictures that the reader of a page can choose from, `interactive` first; empty
            where there is nothing to choose.
    """

    name: str
    title: str
    note: str
    interactive: go.Figure
    still: Callable[[], Still]
    views: Mapping[str, go.Figure] = field(default_factory=dict)

    @styled
    def save(self, folder: str | Path) -> list[Path]:
        """Writes NAME.png and NAME.svg, which are the same bytes each time, into a folder that is made if need be."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        drawn = self.still()
        paths = [folder / f"{self.name}{suffix}" for suffix in (".png", ".svg")]
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            drawn.savefig(path, dpi=PIXELS_AN_INCH, metadata=metadata)
        return paths
