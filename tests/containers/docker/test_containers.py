"""compose.yaml in containers of the images that docker/ builds: a job comes from outside, and a container dies."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import yaml_text
from tests.support.cluster.jobs import STANDING, Answer
from tests.support.containers.engine import Engine, missing, place
from tests.support.containers.images import OURS, build
from tests.support.containers.jobs import ContainedJob, boosting, hpo, record
from tests.support.containers.stack import Stack, running, until
from tests.support.refusals import mentions

WORKERS = 3
SERVICES = ("worker", "serve", "prometheus")
"""With what they wait for; Grafana's image has no stand-in."""

HEALTHY_SECONDS = 240.0
SCRAPE_SECONDS = 120.0

pytestmark = [pytest.mark.skipif(bool(missing()), reason=f"containers cannot be run here: {missing()}")]


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine(place())
    build(made, again=True)
    return made


@pytest.fixture(scope="module")
def stack(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(engine, tmp_path_factory.mktemp("stack")) as made:
        made.up(*SERVICES, workers=WORKERS)
        until(lambda: unwell(made) == {}, "all containers to be well", HEALTHY_SECONDS)
        yield made


@pytest.fixture(scope="module")
def undisturbed(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return ContainedJob(stack, tmp_path_factory.mktemp("jobs") / "undisturbed", "undisturbed").answer()


def unwell(stack: Stack) -> dict[str, tuple[str, str]]:
    """The containers that are not healthy; Prometheus's image has no health check."""
    return {name: state for name, state in stack.health().items() if state not in (WELL, ("running", "unknown"))}


WELL = ("running", "healthy")


def asked(stack: Stack, path: str, **query: str) -> Any:
    """What Prometheus answers, at the port that the file publishes."""
    url = f"http://127.0.0.1:{stack.ports[9090]}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def test_the_image_is_what_a_cluster_needs_of_it(engine: Engine) -> None:
    [image] = json.loads(engine.run("podman", "image", "inspect", OURS).stdout)
    assert image["HealthCheck" if "HealthCheck" in image else "Healthcheck"]["Test"][:2] == ["CMD", "python"]
    script = "id -u && pip check && hpo --version && ls && test ! -w /etc && env"
    said = engine.run("podman", "run", "--rm", "--network=none", "--cap-drop=all", OURS, "sh", "-c", script).stdout
    lines = said.splitlines()
    assert lines[0] == "1000"
    assert "No broken requirements found." in lines
    assert not {"build", "warmband.egg-info", "docs", "tests"} & set(lines)
    assert "RAY_AUTH_MODE=token" in lines
    assert not [line for line in lines if line.startswith("PIP_")]


def test_each_container_is_well_and_holds_no_more_than_it_needs(stack: Stack) -> None:
    assert stack.health().keys() == {
        "postgres_1",
        "head_1",
        "serve_1",
        "prometheus_1",
        *(f"worker_{n + 1}" for n in range(WORKERS)),
    }
    for service in ("head", "worker", "serve"):
        status = stack.within(service, "cat", "/proc/self/status")
        assert [line for line in status.splitlines() if line.startswith("CapBnd") and int(line.split()[1], 16) == 0]
        assert [line for line in status.splitlines() if line.split() == ["NoNewPrivs:", "1"]]
    token = stack.secret("ray_token")
    for name in stack.health():
        service, _, number = name.partition("_")
        assert token not in stack.logs(service, int(number))
        assert not [line for line in stack.processes(service, int(number)) if token in line]


def test_prometheus_finds_every_node(stack: Stack) -> None:
    def up() -> set[str]:
        targets = asked(stack, "targets")["activeTargets"]
        return {target["labels"]["instance"].split(":")[0] for target in targets if target["health"] == "up"}

    until(lambda: len(up()) == 1 + WORKERS, "a target for each node", SCRAPE_SECONDS)


def test_a_job_from_outside_is_watched_and_shown(stack: Stack, undisturbed: Answer) -> None:
    assert len(undisturbed.trials) == 7  # With the un-tuned one.
    mentions(hpo(stack, "describe", "undisturbed"), "undisturbed", "Completed")
    assert undisturbed.best in hpo(stack, "trials", "undisturbed")
    # Without Warmband on the machine: the command is in the image too.
    assert "undisturbed" in stack.within("head", "hpo", "jobs")

    def reported() -> bool:
        found = asked(stack, "query", query='max_over_time(ray_warmband_trials{tuning_job="undisturbed"}[10m])')[
            "result"
        ]
        return bool(found)

    until(reported, "the job's metrics", SCRAPE_SECONDS)


def test_who_has_no_token_gets_nothing(stack: Stack, tmp_path: Path) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{stack.ports[8265]}/api/jobs/", timeout=10)
    assert caught.value.code in (401, 403)


@pytest.mark.fault
def test_a_worker_container_dies_and_the_answer_is_the_same(stack: Stack, tmp_path: Path, undisturbed: Answer) -> None:
    job = ContainedJob(stack, tmp_path / "disturbed", "disturbed", slow=STANDING, slow_after=2)
    job.until_epoch(2)
    host, _ = job.at_work()
    [number] = [n for n in range(1, WORKERS + 1) if stack.within("worker", "hostname", number=n).strip() == host]
    stack.kill("worker", number)
    job.slow(None)
    assert job.answer() == undisturbed
    assert job.attempts() > 0
    # Who kills a container wants it to stay so: it comes back when it is told to.
    stack.up(*SERVICES, workers=WORKERS)
    until(lambda: unwell(stack) == {}, "the container to be well again", HEALTHY_SECONDS)


@pytest.mark.fault
def test_the_head_crashes_comes_back_by_itself_and_the_job_is_resumed(
    stack: Stack, tmp_path: Path, undisturbed: Answer
) -> None:
    job = ContainedJob(stack, tmp_path / "resumed", "resumed", slow=STANDING, slow_after=2)
    job.until_epoch(2)
    before = nodes(stack)
    stack.crash("head")
    # Workers look for it for a minute, end, and are started again, too.
    until(lambda: len(now := nodes(stack)) == WORKERS + 1 and not now & before, "new nodes", HEALTHY_SECONDS, every=2)
    until(lambda: unwell(stack) == {}, "all containers to be well again", HEALTHY_SECONDS)
    job.slow(None)
    job.resume()
    assert job.answer() == undisturbed


@pytest.mark.fault
@pytest.mark.usefixtures("undisturbed")  # Its tables are used again.
def test_the_server_creates_a_job_on_the_cluster_which_goes_on_when_its_container_dies(stack: Stack) -> None:
    url = f"http://127.0.0.1:{stack.ports[8900]}"
    bearer = {"Authorization": f"Bearer {stack.secret('serve_token')}"}
    assert httpx.get(f"{url}/api/jobs").status_code == 401
    with httpx.Client(base_url=url, headers=bearer, timeout=60) as client:
        assert "undisturbed" in client.get("/api/jobs").text
        created = client.post("/api/jobs", content=yaml_text.dump(boosting("served")))
        assert created.status_code == 201, created.text
        until(lambda: client.get("/api/jobs/served/trials").json()["trials"], "a trial of the job", HEALTHY_SECONDS)
        stack.crash("serve")
        with record(stack) as store:
            until(lambda: store.job("served").status == "Completed", "the job's end", HEALTHY_SECONDS)
            assert [(act.kind, act.by, act.door) for act in store.acts("served")] == [("created", "first", "REST")]
        until(lambda: unwell(stack) == {}, "the server to be well again", HEALTHY_SECONDS)
        assert client.get("/api/jobs/served").json()["HyperParameterTuningJobStatus"] == "Completed"


def nodes(stack: Stack) -> set[str]:
    """The nodes of the cluster that Ray has, by their numbers; none while there is no head."""
    return set(re.findall(r"node_[0-9a-f]+", stack.within("head", "ray", "status", check=False)))
