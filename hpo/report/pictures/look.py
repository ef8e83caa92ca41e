"""The look of pictures in both forms: colours, fonts, axes, and escaped text.

Every colour here has a contrast of at least 3 to white and to the dark page, so that one set serves both.
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Still
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

BEST = "#d9501e"
"""The best trial, and nothing else."""

BLUE, GREEN, VIOLET, OCHRE, ROSE, GREY = "#2a86cf", "#0f9b78", "#7a6fd0", "#a9760a", "#b8629a", "#84909e"

BRICK, OLIVE = "#b4654f", "#7d7a2e"

SERIES = (BLUE, GREEN, VIOLET, BRICK, OLIVE)
"""For what has no order, such as brackets and jobs."""

KINDS = {"starting": OCHRE, "training": BLUE, "checkpointing": ROSE, "idle": GREY}
"""Kind of a billed second."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PIXELS_AN_INCH = 160
HEIGHT = 420
"""Pixels of an interactive picture, where what it shows needs no more."""

WIDTH, STILL_HEIGHT = 9.0, 5.0
"""Inches of a still."""

PANEL_HEIGHT = 2.1
"""Inches of a row of panels."""

_INK, _PALE = "#2b3138", "#e3e6ea"

styled = mpl.rc_context(
    {
        "text.color": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": "#9aa3ad",
        "axes.axisbelow": True,
        "grid.color": _PALE,
        "font.size": 10,
        "legend.frameon": False,
        # A name such as "$x" is no formula.
        "text.parse_math": False,
        "svg.hashsalt": "the same file every time",
    }
)
"""Decorates what draws a still, or writes one."""


def _template(ink: str, lines: str, card: str) -> go.layout.Template:
    axis = {"gridcolor": lines, "linecolor": lines, "zeroline": False, "automargin": True, "title": {"standoff": 8}}
    return go.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": ink, "family": FONT, "size": 13},
            "colorway": list(SERIES),
            "xaxis": axis,
            "yaxis": {**axis, "ticklabelstandoff": 6},
            "hoverlabel": {"bgcolor": card, "bordercolor": lines, "font": {"color": ink, "family": FONT}},
            "legend": {"bgcolor": "rgba(0,0,0,0)"},
            "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
        }
    )


TEMPLATES = {
    "light": _template("#2b3138", "#e3e6ea", "#ffffff"),
    "dark": _template("#d5dae0", "#2f3741", "#1d232b"),
}
"""An interactive picture's `layout.template` in each colour scheme; it is made with the light one."""


def interactive(*traces: Any, height: int = HEIGHT, **layout: Any) -> go.Figure:
    """An interactive picture in the light scheme, its legend below it."""
    legend = {
        "orientation": "h",
        "yref": "container",
        "y": 0,
        "yanchor": "bottom",
        "xref": "container",
        "x": 0,
        "xanchor": "left",
        "tracegroupgap": 0,
        "traceorder": "normal",
        "font": {"size": 12},
    }
    figure = go.Figure(layout={"template": TEMPLATES["light"], "height": height, "legend": legend})
    figure.add_traces(list(traces))
    figure.update_layout(**layout)
    return figure


def rows(names: Sequence[str]) -> dict[str, Any]:
    """The axis of bars that lie: their names, the first one on top."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [plain(wrapped(name)).replace("\n", "<br>") for name in names],
        "autorange": "reversed",
        "showgrid": False,
    }


def still_rows(axes: Axes, names: Sequence[str]) -> None:
    """The same of a still, whose bars are at 0, 1 and so on."""
    axes.set_yticks(range(len(names)), [wrapped(name, 34) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def canvas(title: str, subtitle: str, *, height: float = STILL_HEIGHT) -> tuple[Still, Axes]:
    """A still with its title and one pair of axes; call it within `styled`."""
    still, (axes,) = panels(title, subtitle, 1, 1, height=height)
    return still, axes


def panels(
    title: str, subtitle: str, rows: int, columns: int, *, height: float | None = None
) -> tuple[Still, list[Axes]]:
    """A still with its title and rows of axes; call it within `styled`."""
    height = height or 1.3 + PANEL_HEIGHT * rows
    lines = textwrap.wrap(title, 90)
    # Inches from the top: the title's first line, and what its lines and the subtitle take.
    top, line = 0.12, 0.22
    header = top + line * len(lines) + 0.26
    height += line * (len(lines) - 1)
    layout = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08, rect=(0, 0, 1, 1 - header / height))
    still = Still(figsize=(WIDTH, height), layout=layout)
    left = 0.1 / WIDTH
    still.suptitle("\n".join(lines), x=left, y=1 - top / height, ha="left", fontsize=12.5, weight="bold")
    still.text(left, 1 - (header - 0.23) / height, shortened(subtitle, 110), va="top", fontsize=9.5, color="#66707c")
    panels = [*still.subplots(rows, columns, squeeze=False).flat]
    for axes in panels:
        axes.grid()
        axes.spines[["top", "right"]].set_visible(False)
    return still, panels


def narrowed(whole: NDArray[np.int64]) -> NDArray[Any]:
    """Whole numbers from 0 on, in as few bytes as hold them: a page carries every one."""
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))


def plain(text: object) -> str:
    """Text for an interactive picture, which would take `<` and `&` for HTML."""
    return html.escape(str(text), quote=False)


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit for an axis of so many seconds, and how many of them it has."""
    if seconds < 180:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 3 * 3600 else (3600.0, "hours")


def amount(value: float) -> str:
    """An amount to three digits, or to the last whole one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def score(value: float | None) -> str:
    """An objective's value, to four digits after the point where it has the size of one."""
    if value is None:
        return "no value"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 else f"{value:.4g}"


def shortened(text: str, letters: int = 40) -> str:
    """Text cut to so many letters, with a sign that it is."""
    return text if len(text) <= letters else text[: letters - 1] + "\u2026"


def wrapped(text: str, letters: int = 20) -> str:
    """Text in two lines of so many letters at most, broken after spaces and what joins the parts of a name."""
    lines = [""]
    for part in re.findall(r"[^\s_:.-]*[\s_:.-]*", text):
        if lines[-1] and len((lines[-1] + part).rstrip()) > letters:
            lines.append("")
        lines[-1] += part
    told = lines if len(lines) < 3 else [lines[0], "".join(lines[1:])]
    return "\n".join(shortened(line.strip(), letters) for line in told)


def distinct(names: Sequence[str]) -> list[str]:
    """Names as they are, those that come again with a number."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def faded(colour: str, part: float = 0.16) -> str:
    """A colour of which only a part covers what lies below."""
    return "rgba(" + ",".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5)) + f",{part})"


def ramp(number: int) -> list[str]:
    """Colours of an order, from what recedes to what stands out."""
    anchors = [GREY, VIOLET, BLUE, GREEN]
    places = np.linspace(0, len(anchors) - 1, number) if number > 1 else np.array([len(anchors) - 1.0])
    channels = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in anchors])
    mixed = [np.interp(places, range(len(anchors)), channels[:, channel]) for channel in range(3)]
    return ["#" + "".join(f"{round(float(part)):02x}" for part in parts) for parts in zip(*mixed, strict=True)]


def bounds(values: Iterable[float], always: Sequence[float | None] = ()) -> tuple[float, float] | None:
    """Between which values an axis shows most, where a few far ones would flatten all others.

    Args:
        values: what is drawn.
        always: what has to be seen.

    Returns:
        None where the axis had better show everything.
    """
    numbers: NDArray[np.float64] = np.fromiter((value for value in values if math.isfinite(value)), dtype=np.float64)
    if numbers.size < 10:
        return None
    low, high = (float(edge) for edge in np.quantile(numbers, (0.02, 0.98)))
    shown = [low, high, *(value for value in always if value is not None and math.isfinite(value))]
    low, high = min(shown), max(shown)
    if high <= low or numbers.max() - numbers.min() < 4 * (high - low):
        return None
    near = numbers[(numbers >= 2 * low - high) & (numbers <= 2 * high - low)]
    low, high = min(low, float(near.min())), max(high, float(near.max()))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
