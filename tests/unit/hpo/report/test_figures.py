"""All pictures: what they are called, that they are the same every time, small, and safe."""

import json
import re

import pytest

from hpo.report.pictures import look
from tests.support.hpo.report.figures import hostile  # noqa: F401  # A fixture.


def strings(value: object) -> list[str]:
    """Every text in a figure that plotly shows."""
    if isinstance(value, dict):
        return [text for key, item in value.items() if key != "bdata" for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_text_that_looks_like_html_is_text(hostile):
    for figure in hostile:
        for text in strings(json.loads(figure.interactive.to_json())):
            assert set(re.findall(r"<[^>]*>?", text)) <= {"<br>", "<extra>", "</extra>"}, text


def test_names_are_no_templates(hostile):
    """What plotly fills in are its own fields."""
    for figure in hostile:
        for trace in figure.interactive.data:
            fields = set(re.findall(r"%\{(\w+)", trace.hovertemplate or ""))
            assert fields <= {"x", "y", "z", "text", "hovertext", "customdata"}


def contrast(colour: str, other: str) -> float:
    """WCAG's contrast of two colours."""
    light, dark = sorted((luminance(colour), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colours_can_be_seen_on_light_and_on_dark():
    for colour in {look.BEST, *look.SERIES, *look.KINDS.values(), *look.ramp(5)}:
        assert contrast(colour, "#ffffff") >= 3, colour
        assert contrast(colour, "#15181d") >= 3, colour


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("eta", "eta"),
        ("colsample_bylevel", "colsample_\nbylevel"),
        ("per_worker_batch_size", "per_worker_\nbatch_size"),
        ("a much longer name than fits", "a much\nlonger name\u2026"),
        ("", ""),
    ],
)
def test_labels_are_broken_where_names_have_joints(text, lines):
    assert look.wrapped(text, 12) == lines


def test_an_axis_leaves_out_what_would_flatten_the_rest():
    near = [0.5 + place / 100 for place in range(50)]
    assert look.bounds(near) is None
    assert look.bounds([1.0, 2.0]) is None
    low, high = look.bounds([*near, 1e9])
    assert low < 0.5 < 0.99 < high < 1.1
    assert look.bounds([*near, 1e9], always=[1e9]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.78421, "0.7842"), (12.5, "12.5000"), (1e-5, "1e-05"), (-1.5e7, "-1.5e+07"), (None, "no value")],
)
def test_scores_are_said_to_four_digits(value, text):
    assert look.score(value) == text


@pytest.mark.parametrize(("seconds", "unit"), [(90, "seconds"), (600, "minutes"), (20_000, "hours")])
def test_axes_of_time_have_the_unit_that_fits(seconds, unit):
    assert look.time_unit(seconds)[1] == unit
