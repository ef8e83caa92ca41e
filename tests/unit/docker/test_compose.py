"""compose.yaml: what it names is there, nothing listens beyond this machine, and its secrets stay secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.support.docker.deployment import DOCKER, ROOT, read

FILES = ("compose.yaml", "compose.gpu.yaml")
SERVICES = read("compose.yaml")["services"]

# The schema's names, as of compose-spec/compose-spec, schema/compose-spec.json.
TOP = {"name", "services", "networks", "volumes", "secrets", "configs", "include", "models", "version"}
SERVICE = set(
    re.findall(
        r"\w+",
        "annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs container_name "
        "cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset "
        "credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search domainname "
        "entrypoint env_file environment expose extends external_links extra_hosts gpus group_add healthcheck "
        "hostname image init ipc isolation label_file labels links logging mac_address mem_limit mem_reservation "
        "mem_swappiness memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit "
        "platform ports post_start pre_stop privileged profiles provider pull_policy read_only restart runtime scale "
        "secrets security_opt shm_size stdin_open stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits "
        "user userns_mode uts volumes volumes_from working_dir ",
    )
)
HEALTHCHECK = {"disable", "interval", "retries", "start_interval", "start_period", "test", "timeout"}

# What the images of others read.
OTHERS = {
    "POSTGRES_USER",
    "POSTGRES_DB",
    "POSTGRES_PASSWORD_FILE",
    "GF_SECURITY_ADMIN_PASSWORD__FILE",
    "GF_ANALYTICS_REPORTING_ENABLED",
}
AWS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}


@pytest.mark.parametrize("name", FILES)
def test_the_keys_are_the_specification_s(name: str) -> None:
    found = read(name)
    assert {key for key in found if not key.startswith("x-")} <= TOP
    for service in found["services"].values():
        assert service.keys() <= SERVICE
        assert service.get("healthcheck", {}).keys() <= HEALTHCHECK


def test_every_port_is_this_machine_s_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 5
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in ports)


def test_who_waits_waits_for_something_that_says_it_is_well() -> None:
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        for other, how in waits.items() if isinstance(waits, dict) else ((each, {}) for each in waits):
            assert other in SERVICES, name
            if how.get("condition") == "service_healthy":
                assert SERVICES[other]["healthcheck"]["test"][0] == "CMD"


def test_every_file_that_is_mounted_is_there() -> None:
    mounted = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    files = [volume.split(":") for volume in mounted if volume.startswith(".")]
    assert len(files) == 3
    for source, target, mode in files:
        assert (DOCKER / source).exists(), source
        assert mode == "ro"
        assert target.startswith("/etc/")
    named = {volume.partition(":")[0] for volume in mounted if not volume.startswith(".")}
    assert named == set(read("compose.yaml")["volumes"])
    dashboards = (DOCKER / "grafana/provisioning/dashboards/warmband.yaml").read_text()
    assert "/etc/grafana/dashboards" in dashboards
    assert "./grafana/warmband.json:/etc/grafana/dashboards/warmband.json:ro" in mounted


def test_every_variable_is_one_that_is_read() -> None:
    ours = "".join(path.read_text() for package in ("hpo", "trainers") for path in (ROOT / package).rglob("*.py"))
    library = (Path(ray.__file__).parent / "_raylet.so").read_bytes()
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            assert name in OTHERS | AWS or f'"{name}"' in ours or name.encode() in library, name
            assert isinstance(value, str), name


def test_no_secret_stands_in_the_files() -> None:
    def texts(value: Any) -> Any:
        if isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, str) and re.search(r"(?i)password|token$|secret", str(name)):
                    yield inner
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)

    for name in FILES:
        for text in texts(read(name)):
            assert re.fullmatch(r"/run/secrets/\w+|secrets/\w+|\$\{\w+:-\}", text), text


def test_ray_s_services_run_with_as_little_as_they_need() -> None:
    for name in ("head", "worker"):
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in SERVICES[name]


def test_the_gpu_file_changes_nothing_else() -> None:
    over = read("compose.gpu.yaml")["services"]
    assert over.keys() <= SERVICES.keys()
    assert {key for service in over.values() for key in service} == {"image", "build", "deploy"}
    for service in over.values():
        assert (DOCKER / ".." / service["build"]["dockerfile"]).exists()
