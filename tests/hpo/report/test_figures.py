"""All pictures: what they are called, that they are the same every time, small, and safe."""

import json
import re

import pytest

from hpo.report.figures import comparison_figures, job_figures
from hpo.report.pictures import look
from hpo.report.pictures.gantt import brackets
from tests.support.records import HOSTILE, large, made_up

TRIALS = ["learning-curves", "brackets", "cost", "progress", "parallel-coordinates"]
MODEL = ["importance", "slices", "contours", "predictions"]


@pytest.fixture(scope="module")
def figures():
    return job_figures(made_up())


@pytest.fixture(scope="module")
def hostile():
    """Of one job, and of two side by side."""
    jobs = [made_up(hostile=True, name=HOSTILE), made_up(hostile=True, name="b", seed=2)]
    return [*job_figures(jobs[0]), *comparison_figures(jobs)]


def test_a_job_has_all_its_pictures_in_order(figures):
    assert [figure.name for figure in figures] == [*TRIALS, *MODEL]
    with_servers = made_up(trainer="ParameterServerTrainer")
    assert [figure.name for figure in job_figures(with_servers)] == [*TRIALS, "staleness", *MODEL]
    assert [figure.name for figure in comparison_figures([made_up(), made_up(name="b")])] == [
        "progress-compared",
        "cost-compared",
    ]


def test_every_picture_becomes_two_files(hostile, tmp_path):
    for figure in hostile:
        png, svg = figure.save(tmp_path)
        assert (png.name, svg.name) == (f"{figure.name}.png", f"{figure.name}.svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in svg.read_bytes()


def test_files_are_the_same_every_time(figures, tmp_path):
    """Also those that are drawn anew from the same record, and hold clips and hatches, which have names in a file."""
    anew = brackets(made_up())
    for figure, again in [(figures[0], figures[0]), (figures[1], anew)]:
        first, second = figure.save(tmp_path / "1"), again.save(tmp_path / "2")
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


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


def test_pictures_have_no_title_or_background_of_their_own(figures):
    for figure in figures:
        layout = json.loads(figure.interactive.to_json())["layout"]
        assert "title" not in layout
        assert layout["template"]["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"
        assert figure.interactive.layout.template == look.TEMPLATES["light"]
        still = figure.still()
        assert " ".join(still.get_suptitle().split()) == figure.title


def test_a_thousand_long_trials_stay_small():
    sizes = {figure.name: len(figure.interactive.to_json()) for figure in job_figures(large())}
    assert list(sizes) == [*TRIALS, *MODEL]
    assert sum(sizes.values()) < 1_000_000, sizes


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
