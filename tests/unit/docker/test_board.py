"""The Grafana dashboard as a file: only what exists is asked for, and every panel says what it shows."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hpo.observers.prometheus import JOB, METRICS
from tests.support import yaml_text

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
BOARD = json.loads((DOCKER / "grafana/warmband.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
ASKED = [target["expr"] for panel in PANELS for target in panel["targets"]]


def names(text: str) -> set[str]:
    return set(re.findall(r"ray_warmband_\w+", text))


def test_the_queries_ask_for_every_metric_and_for_no_other() -> None:
    known = {f"ray_{metric.name}{'_bucket' if metric.boundaries else ''}" for metric in METRICS}
    assert names("\n".join(ASKED)) == known


@pytest.mark.parametrize("asked", ASKED)
def test_the_queries_know_the_tags(asked: str) -> None:
    tags = {tag for metric in METRICS if f"ray_{metric.name}" in asked for tag in metric.tags}
    for inside in re.findall(r"\{([^}]*)\}", asked):
        assert set(re.findall(r"(\w+)=", inside)) <= {*tags, JOB}
    for inside in re.findall(r"by \(([^)]*)\)", asked):
        assert set(inside.split(", ")) <= {*tags, JOB, "le"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_panels_have_names_and_places_of_their_own() -> None:
    boxes = [panel["gridPos"] for panel in BOARD["panels"]]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len({panel["title"] for panel in BOARD["panels"]})
    for one, other in itertools.combinations(boxes, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(box["x"] + box["w"] <= 24 for box in boxes)


def test_data_source_and_job_are_chosen_when_it_is_looked_at() -> None:
    variables = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    [name] = names(variables["job"]["definition"])
    assert name in names("\n".join(ASKED))
    assert set(re.findall(r"\$(\w+)", "\n".join(ASKED))) <= {"job", "__range"}
    assert "__inputs" not in BOARD, "Ray's Grafana provisions it as it is, without anybody to fill in inputs"


def test_grafana_s_provisioning_names_the_data_source_and_the_folder() -> None:
    [source] = yaml_text.load((DOCKER / "grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    [provider] = yaml_text.load((DOCKER / "grafana/provisioning/dashboards/warmband.yaml").read_text())["providers"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    assert provider["options"]["path"].startswith("/etc/grafana/")


def test_the_page_lists_every_metric() -> None:
    page = (ROOT / "docs/guides/watching.md").read_text()
    for metric in METRICS:
        tags = ", ".join(f"`{tag}`" for tag in metric.tags) or "none; a histogram"
        assert f"| `ray_{metric.name}` | {tags} | {metric.unit} | {metric.text} |" in page


def test_the_page_s_pictures_are_there_and_small() -> None:
    page = (ROOT / "docs/guides/watching.md").read_text()
    pictures = {ROOT / "docs" / "guides" / name for name in re.findall(r"!\[.*?\]\((.*?)\)", page)}
    assert pictures == set((ROOT / "docs/guides/watching").glob("*.png"))
    assert all(picture.stat().st_size < 150_000 for picture in pictures)
