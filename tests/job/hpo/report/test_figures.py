"""All pictures: what they are called, that they are the same every time, small, and safe."""

import json

import pytest

from hpo.report.figures import comparison_figures, job_figures
from hpo.report.pictures import look
from hpo.report.pictures.gantt import brackets
from tests.support.hpo.report.figures import hostile  # noqa: F401  # A fixture.
from tests.support.records import large, made_up

TRIALS = ["learning-curves", "brackets", "cost", "progress", "parallel-coordinates"]
MODEL = ["importance", "slices", "contours", "predictions"]


@pytest.fixture(scope="module")
def figures():
    return job_figures(made_up())


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
