"""A training result in a notebook: a small table with escaped text."""

from __future__ import annotations

import html
from collections.abc import Mapping


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A table of names and values under a title; floats have six significant digits."""
    rows = "".join(f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>" for name, value in facts.items())
    return f"<div><p><strong>{_text(title)}</strong></p><table><tbody>{rows}</tbody></table></div>"


def _text(value: object) -> str:
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))
