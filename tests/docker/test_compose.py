"""compose.yaml: what it names is there, nothing listens beyond this machine, and its secrets stay secret."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray

from hpo.serve import Tokens
from tests.support import yaml_text
from tests.support.docker.deployment import DOCKER, ROOT, read
from tests.support.programs import COMPOSE_SCHEMA

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


@pytest.mark.system
@pytest.mark.parametrize("name", FILES)
def test_the_file_is_valid_by_the_specification_s_schema(name: str) -> None:
    found = read(name)
    found.pop("name", None)  # Newer than Debian's copy.
    jsonschema.Draft202012Validator(json.loads(COMPOSE_SCHEMA.read_text())).validate(found)


@pytest.mark.system
@pytest.mark.parametrize("names", [FILES[:1], FILES], ids=["alone", "with GPUs"])
def test_docker_compose_takes_it(names: tuple[str, ...], tmp_path: Path) -> None:
    """Debian's, which knows no `name` yet; it resolves variables and references, and lays one file over the other."""
    for name in names:
        text = (DOCKER / name).read_text()
        (tmp_path / name).write_text(re.sub(r"^name: .*\n", "", text, flags=re.MULTILINE))
    files = [argument for name in names for argument in ("--file", name)]
    done = subprocess.run(
        ["docker-compose", *files, "config"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    made = yaml_text.load(done.stdout)["services"]
    assert made.keys() == SERVICES.keys()
    for name in ("head", "worker"):
        image = made[name]["image"]
        assert image.endswith("-gpu") == (len(names) > 1)
        assert made[name]["secrets"], "what the other file does not name is kept"


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


@pytest.mark.process
def test_secrets_are_files_that_the_script_makes(tmp_path: Path) -> None:
    copy = tmp_path / "docker"
    copy.mkdir()
    shutil.copy(DOCKER / "make-secrets.sh", copy)
    for _ in range(2):
        subprocess.run(["sh", str(copy / "make-secrets.sh")], check=True, capture_output=True, timeout=60)
    made = {path.name: path.read_text() for path in (copy / "secrets").iterdir()}
    declared = read("compose.yaml")["secrets"]
    # The server has the digests of its tokens alone.
    assert {Path(secret["file"]).name for secret in declared.values()} == set(made) - {"serve_token"}
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(declared)
    for name, text in made.items():
        assert stat.S_IMODE((copy / "secrets" / name).stat().st_mode) == 0o640
        assert re.fullmatch(r"[0-9a-f]{64}", text) or name in ("store_url", "serve_tokens")
    assert len(set(made.values())) == 6
    assert made["store_url"] == f"postgresql://warmband:{made['postgres_password']}@postgres/warmband"
    tokens = Tokens(copy / "secrets" / "serve_tokens")
    assert (found := tokens.find(made["serve_token"])) is not None
    assert (found.name, found.rights) == ("first", "act")
    assert re.fullmatch(r"WARMBAND_GID=\d+\n", (copy / ".env").read_text())
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"docker/secrets/", "docker/.env"} <= set(ignored)


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
