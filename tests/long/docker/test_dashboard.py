"""Every panel of the Grafana dashboard, asked of a real Prometheus that scrapes a real Ray with a running job."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hpo.observers.prometheus import CHECKPOINTS, METRICS, STARTS
from hpo.record.store import Store
from hpo.sagemaker.analytics import tuned_trials
from tests.support.docker.showing import Held, Values, expected, wrong
from tests.support.docker.watched_job import JOB
from tests.support.ports import free_port

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
BOARD = json.loads((DOCKER / "grafana/warmband.json").read_text())
PANELS = {panel["title"]: panel for panel in BOARD["panels"] if panel["type"] != "row"}

DEADLINE = 240.0
END_SECONDS = 60.0
REPORT_MS = 6000
"""Ray's period in this test; in life it is 10 s."""


@dataclass(slots=True)
class Prometheus:
    """A server of the test's own."""

    url: str
    since: float = field(default_factory=time.time)

    def ask(self, path: str, **query: Any) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def panel(self, panel: dict[str, Any]) -> list[Values]:
        """The last value of each series, target by target, by the values of its labels."""
        found = []
        for target in panel["targets"]:
            asked = target["expr"].replace("$job", JOB).replace("$__range", "900s")
            if target["instant"]:
                answer = self.ask("query", query=asked)["result"]
                pairs = [(series["metric"], series["value"]) for series in answer]
            else:
                answer = self.ask("query_range", query=asked, start=self.since, end=time.time(), step=1)["result"]
                pairs = [(series["metric"], series["values"][-1]) for series in answer]
            assert "$" not in asked, "a variable that this test does not know"
            found.append({_key(labels): float(value) for labels, (_, value) in pairs})
        return found

    def panels(self) -> dict[str, list[Values]]:
        return {title: self.panel(panel) for title, panel in PANELS.items()}


def _key(labels: dict[str, str]) -> tuple[str, ...]:
    return tuple(value for _, value in sorted(labels.items()))


@dataclass(slots=True, kw_only=True)
class Seen:
    """What was to be seen while the job ran, when it had ended, and when its Ray was gone."""

    during: dict[str, list[Values]] = field(default_factory=dict)
    after: dict[str, list[Values]] = field(default_factory=dict)
    gone: dict[str, list[Values]] = field(default_factory=dict)
    held_during: Held
    held_after: Held
    listed: dict[str, Any]
    scraped: list[str]
    in_file: list[str]
    texts: dict[str, str]


def until(what: str, condition: Callable[[], Any]) -> Any:
    """What `condition` gives as soon as that is something."""
    deadline = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {DEADLINE:.0f} s for {what}"
        time.sleep(0.5)
    return found


def settled(prometheus: Prometheus, values: dict[str, Values]) -> dict[str, list[Values]]:
    """All panels, once those that the record knows show what it holds and none is empty, or as they are at the end."""
    deadline = time.monotonic() + DEADLINE
    while True:
        found = prometheus.panels()
        if (not wrong(found, values) and all(map(all, found.values()))) or time.monotonic() > deadline:
            return found
        time.sleep(2)


class Processes:
    """What the test starts, each in a session of its own, and ends."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            self.end(process)

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen([*command], text=True, start_new_session=True, **options)
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """With all that it has started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_SECONDS)


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """One job on a Ray of its own, looked at three times."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))  # Ray's socket names must be short.
    with Processes() as processes:
        yield look(folder, processes)
    shutil.rmtree(folder, ignore_errors=True)


def look(folder: Path, processes: Processes) -> Seen:
    """Runs the job, and asks."""
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    url = f"sqlite:///{folder}/store.db"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "WARMBAND_HOME": str(folder / "home"),
        "WARMBAND_STORE": url,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token.read_text(),
        "RAY_metrics_report_interval_ms": str(REPORT_MS),
        "REPORTER_UPDATE_INTERVAL_MS": "60000",  # Nobody asks what each process uses.
    }
    head, environment["RAY_ADDRESS"] = start_head(folder, processes, environment)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program = (sys.executable, "-m", "tests.support.docker.watched_job", str(folder))
    errors = folder / "driver.log"
    with errors.open("w") as log:
        driver = processes.start(*program, env=environment, cwd=ROOT, stderr=log, **pipes)
    up = heard(driver, "up", errors)
    prometheus = serve(folder, processes, up["webui_url"], token)
    until("Ray's service discovery file", lambda: _targets(Path(up["session_dir"])))
    go_on(driver)
    until("a trial in the second rung", lambda: at_gate(url))
    during = Held.now(url)
    panels_during = settled(prometheus, expected(during, driver=True, busy=True))
    texts = {name: about[0]["help"] for name, about in prometheus.ask("metadata").items()}
    scraped, in_file = agreed(prometheus, Path(up["session_dir"]))
    (folder / "gate").touch()
    listed = heard(driver, "ended", errors)
    after = Held.now(url)
    # Its process lives on, as a notebook would: the gauges go all the same.
    panels_after = settled(prometheus, expected(after, driver=False, busy=False))
    go_on(driver)
    heard(driver, "left", errors)
    processes.end(head)
    return Seen(
        during=panels_during,
        after=panels_after,
        gone=prometheus.panels(),
        held_during=during,
        held_after=after,
        listed=listed,
        scraped=scraped,
        in_file=in_file,
        texts=texts,
    )


def at_gate(url: str) -> bool:
    """Whether a trial waits in its second rung."""
    with Store(url) as store:
        if JOB not in (job.name for job in store.jobs()):
            return False
        return any(trial.status == "Running" and trial.resource >= 1 for trial in tuned_trials(store, JOB))


def start_head(folder: Path, processes: Processes, environment: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """A Ray with its dashboard, and its address; every port is its own, as other tests' Ray may be there."""
    port, log = free_port(), folder / "head.log"
    with log.open("w") as out:
        head = processes.start(
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--include-dashboard=true"),
            *("--num-cpus=8", "--node-ip-address=127.0.0.1", f"--port={port}", f"--temp-dir={folder}/ray"),
            *("--dashboard-port=0", f"--dashboard-agent-listen-port={free_port()}"),
            *(f"--ray-client-server-port={free_port()}", "--include-log-monitor=false"),
            "--disable-usage-stats",
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    until("the head node", lambda: "Ray runtime started" in log.read_text())
    return head, f"127.0.0.1:{port}"


def serve(folder: Path, processes: Processes, dashboard: str, token: Path) -> Prometheus:
    """A Prometheus with the compose file's own configuration, but for the addresses, the secret and the haste."""
    config = (DOCKER / "prometheus/prometheus.yml").read_text()
    for ours, theirs in {
        "http://head:8265": f"http://{dashboard}",
        "/run/secrets/ray_token": str(token),
        "scrape_interval: 10s": "scrape_interval: 2s",
        "refresh_interval: 10s": "refresh_interval: 1s",
    }.items():
        assert ours in config
        config = config.replace(ours, theirs)
    file, address = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    file.write_text(config)
    tail = (f"--storage.tsdb.path={folder}/prometheus", f"--web.listen-address={address}", "--log.level=error")
    processes.start("prometheus", f"--config.file={file}", *tail)
    return Prometheus(f"http://{address}")


def heard(driver: subprocess.Popen[str], what: str, errors: Path) -> dict[str, Any]:
    """The driver's line that says so; what else it prints is passed over."""
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.startswith("{") and (found := json.loads(line))["what"] == what:
            return cast(dict[str, Any], found)
    raise AssertionError(f"the driver ended before it was {what}:\n{errors.read_text()[-4000:]}")


def go_on(driver: subprocess.Popen[str]) -> None:
    """Lets the driver take its next step."""
    assert driver.stdin is not None
    driver.stdin.write("\n")
    driver.stdin.flush()


def agreed(prometheus: Prometheus, session: Path) -> tuple[list[str], list[str]]:
    """The targets that Prometheus has by HTTP, and those in Ray's file, once they agree or as they are at the end.

    Ray names more of its processes as they come up, in either at its own pace.
    """
    deadline = time.monotonic() + DEADLINE
    while True:
        active = prometheus.ask("targets")["activeTargets"]
        scraped = sorted(target["discoveredLabels"]["__address__"] for target in active)
        in_file = sorted(_targets(session))
        if scraped == in_file or time.monotonic() > deadline:
            return scraped, in_file
        time.sleep(1)


def _targets(session: Path) -> list[str]:
    """What Ray writes for Prometheus' file_sd_configs."""
    file = session / "prom_metrics_service_discovery.json"
    return [target for group in json.loads(file.read_text()) for target in group["targets"]] if file.exists() else []


@pytest.mark.parametrize("when", ["during", "after", "gone"])
@pytest.mark.parametrize("title", PANELS)
def test_no_panel_is_empty(seen: Seen, title: str, when: str) -> None:
    for values in getattr(seen, when)[title]:
        assert values
        assert all(math.isfinite(value) for value in values.values())


def test_while_the_job_runs_each_panel_shows_what_the_record_holds(seen: Seen) -> None:
    wanted = expected(seen.held_during, driver=True, busy=True)
    assert not wrong(seen.during, wanted)
    assert wanted["Trials by state"]["running",] == 1


@pytest.mark.parametrize("when", ["after", "gone"])
def test_when_it_has_ended_the_panels_keep_what_the_record_holds(seen: Seen, when: str) -> None:
    wanted = expected(seen.held_after, driver=False, busy=False)
    assert not wrong(getattr(seen, when), wanted)
    assert wanted["Failures"]["failed",] > 0
    assert wanted["Failures"]["diverged",] > 0
    assert sum(wanted["Staleness"].values()) > 0


def test_what_was_billed_is_shown_by_kind_and_nothing_stays_open(seen: Seen) -> None:
    billed = seen.held_after.billed()
    [shown] = seen.after["Billed worker-seconds by kind"]
    assert shown == pytest.approx({("open",): 0.0, **{(kind,): billed[kind] for kind in billed}}, abs=1e-4)
    assert seen.after["Worker-seconds by job"] == [{(JOB,): pytest.approx(billed.total(), abs=1e-3)}]
    assert seen.during["Gangs by job"] == [{(JOB,): 1.0}]


@pytest.mark.parametrize(
    ("title", "kind", "boundaries"),
    [("Gang starts", "starting", STARTS.boundaries), ("Checkpoints", "checkpointing", CHECKPOINTS.boundaries)],
)
def test_times_lie_in_the_bucket_of_what_the_ledger_has(
    seen: Seen, title: str, kind: str, boundaries: tuple[float, ...]
) -> None:
    seconds = sorted(row.worker_seconds / row.workers for row in seen.held_after.ledger if row.kind == kind)
    half, most = (values[()] for values in seen.after[title])
    for shown, at in ((half, 0.5), (most, 0.95)):
        true = seconds[math.ceil(at * len(seconds)) - 1]
        upper = next((bound for bound in boundaries if true <= bound), boundaries[-1])
        below = [bound for bound in (0.0, *boundaries) if bound < upper]
        assert below[-1] <= shown <= upper


def test_ray_finds_the_same_targets_by_http_and_in_its_file(seen: Seen) -> None:
    assert seen.scraped == seen.in_file
    assert seen.scraped


def test_each_metric_says_what_it_is(seen: Seen) -> None:
    for metric in METRICS:
        assert seen.texts[f"ray_{metric.name}"] == f"{metric.text} [{metric.unit}]"


def test_the_job_s_log_is_among_ray_s_with_the_names_of_job_and_trials(seen: Seen) -> None:
    lines = [json.loads(line) for line in seen.listed["job_log"].splitlines()]
    assert {line["tuning_job"] for line in lines} == {JOB}
    ends = {line["trial"]: line for line in lines if line["event"] == "trial_ends"}
    for trial in seen.held_after.trials:
        line = ends[trial.trial_id]
        assert (line["status"], line["resource"], line["objective"]) == (trial.status, trial.resource, trial.objective)
        assert line["reason"] == trial.failure_reason
    assert lines[0]["event"] == "job_starts"
    assert lines[-1]["event"] == "job_ends"
    assert {"rung", "gangs"} < {line["event"] for line in lines}


def test_what_a_trial_logs_says_which_job_gang_and_trial_it_is_of(seen: Seen) -> None:
    for log in seen.listed["worker_logs"]:
        mine = [line for line in map(json.loads, log.splitlines()) if line["message"] == "an epoch begins"]
        trained = {trial.trial_id for trial in seen.held_after.trials if trial.resource > 0}
        assert trained <= {line["trial"] for line in mine}
        assert {line["tuning_job"] for line in mine} == {JOB}
        assert len({line["gang"] for line in mine}) == 1
    assert len(seen.listed["worker_logs"]) == 2


def test_the_mailbox_is_named_after_its_job(seen: Seen) -> None:
    [mailbox] = [actor for actor in seen.listed["actors"] if actor["class_name"] == "Mailbox"]
    assert mailbox["name"].startswith(f"{JOB}-mailbox-")
