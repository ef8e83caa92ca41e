"""The files for AWS and Kubernetes: keys and fields are ones that Ray, KubeRay and Kubernetes know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import jsonschema
import pytest
import ray.autoscaler
from ray.autoscaler.sdk import fillout_defaults

from tests.support import yaml_text
from tests.support.docker.deployment import DOCKER, ROOT, pinned, read
from tests.support.refusals import refuses

# ---- AWS


def test_ray_s_schema_takes_the_cluster() -> None:
    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(read("cluster-aws.yaml"))


def test_ray_fills_in_the_rest() -> None:
    filled = fillout_defaults(read("cluster-aws.yaml"))
    types = filled["available_node_types"]
    assert filled["head_node_type"] in types
    assert types["head"]["resources"]["CPU"] == 0
    assert "InstanceMarketOptions" not in types["head"]["node_config"]  # The driver runs there.
    for name in ("spot", "spot_gpu"):
        assert types[name]["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
        assert types[name]["max_workers"] <= filled["max_workers"]


def test_every_node_gets_the_token_and_the_record_s_place_as_files() -> None:
    cluster = read("cluster-aws.yaml")
    assert cluster["file_mounts"] == {
        "/home/ray/warmband": ".",
        "/home/ray/.ray/auth_token": "~/.ray/auth_token",
        "/home/ray/.warmband/store_url": "~/.warmband/store_url",
    }
    for commands in (cluster["head_start_ray_commands"], cluster["worker_start_ray_commands"]):
        assert commands[1].startswith("export RAY_AUTH_MODE=token WARMBAND_STORE_FILE=$HOME/.warmband/store_url;")
    assert "**/docker/secrets" in cluster["rsync_exclude"]
    scripts = [line.split()[1] for line in cluster["setup_commands"] if line.startswith("sh ")]
    assert {(ROOT / script.removeprefix("~/warmband/")).exists() for script in scripts} == {True}


# ---- Kubernetes

# The fields of KubeRay's types, from ray-project/kuberay, ray-operator/apis/ray/v1/raycluster_types.go and
# rayjob_types.go (1.5), and those of Kubernetes' that these files use, from its API reference (1.32). A value says what
# is within; None, that nobody looks further.
METADATA: dict[str, Any] = {"name": None, "labels": None, "annotations": None}
RESOURCES: dict[str, Any] = {"requests": None, "limits": None}
CONTAINER: dict[str, Any] = {
    "name": None,
    "image": None,
    "command": None,
    "args": None,
    "env": {"name": None, "value": None, "valueFrom": None},
    "ports": {"name": None, "containerPort": None, "protocol": None},
    "resources": RESOURCES,
    "volumeMounts": {"name": None, "mountPath": None, "readOnly": None, "subPath": None},
    "securityContext": {
        "allowPrivilegeEscalation": None,
        "capabilities": {"add": None, "drop": None},
        "privileged": None,
        "readOnlyRootFilesystem": None,
        "runAsNonRoot": None,
        "runAsUser": None,
        "seccompProfile": {"type": None},
    },
}
POD: dict[str, Any] = {
    "metadata": METADATA,
    "spec": {
        "automountServiceAccountToken": None,
        "containers": CONTAINER,
        "initContainers": CONTAINER,
        "nodeSelector": None,
        "securityContext": {
            "fsGroup": None,
            "runAsGroup": None,
            "runAsNonRoot": None,
            "runAsUser": None,
            "seccompProfile": {"type": None},
        },
        "serviceAccountName": None,
        "terminationGracePeriodSeconds": None,
        "tolerations": {"key": None, "operator": None, "value": None, "effect": None, "tolerationSeconds": None},
        "volumes": {
            "name": None,
            "persistentVolumeClaim": {"claimName": None, "readOnly": None},
            "secret": {"secretName": None, "defaultMode": None, "items": None, "optional": None},
        },
    },
}
CLUSTER: dict[str, Any] = {
    "authOptions": {"mode": None},
    "autoscalerOptions": None,
    "enableInTreeAutoscaling": None,
    "gcsFaultToleranceOptions": None,
    "headGroupSpec": {
        "enableIngress": None,
        "headService": None,
        "rayStartParams": None,
        "serviceType": None,
        "template": POD,
    },
    "headServiceAnnotations": None,
    "managedBy": None,
    "rayVersion": None,
    "suspend": None,
    "workerGroupSpecs": {
        "groupName": None,
        "idleTimeoutSeconds": None,
        "maxReplicas": None,
        "minReplicas": None,
        "numOfHosts": None,
        "rayStartParams": None,
        "replicas": None,
        "scaleStrategy": None,
        "suspend": None,
        "template": POD,
    },
}
JOB: dict[str, Any] = dict.fromkeys(
    re.findall(
        r"\w+",
        "activeDeadlineSeconds backoffLimit clusterSelector deletionStrategy entrypoint entrypointNumCpus "
        "entrypointNumGpus entrypointResources jobId managedBy metadata rayClusterSpec runtimeEnvYAML "
        "shutdownAfterJobFinishes submissionMode submitterConfig submitterPodTemplate suspend "
        "ttlSecondsAfterFinished ",
    )
)
KINDS: dict[str, dict[str, Any]] = {
    "ray.io/v1/RayCluster": CLUSTER,
    "ray.io/v1/RayJob": JOB,
    "v1/PersistentVolumeClaim": {
        "accessModes": None,
        "resources": RESOURCES,
        "storageClassName": None,
        "volumeMode": None,
        "volumeName": None,
    },
}


def unknown(value: Any, fields: dict[str, Any] | None, where: str = "") -> Iterator[str]:
    """Where a tree has fields that are not known."""
    if isinstance(value, list):
        for item in value:
            yield from unknown(item, fields, where)
    elif isinstance(value, dict) and fields is not None:
        for key, inner in value.items():
            if key in fields:
                yield from unknown(inner, fields[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}"


def check(document: dict[str, Any]) -> None:
    """Refuses fields that the document's kind does not have."""
    kind = f"{document['apiVersion']}/{document['kind']}"
    fields = {"apiVersion": None, "kind": None, "metadata": METADATA, "spec": KINDS[kind]}
    assert [*unknown(document, fields)] == []


def kustomized(folder: Path) -> dict[str, Any]:
    """What `kubectl apply -k` of a folder sends, by kind: its resources, changed by its JSON patches (RFC 6902)."""
    asked = yaml_text.load((folder / "kustomization.yaml").read_text())
    assert (asked["apiVersion"], asked["kind"]) == ("kustomize.config.k8s.io/v1beta1", "Kustomization")
    assert asked.keys() <= {"apiVersion", "kind", "resources", "patches"}, "this test knows no more of kustomize"
    made: dict[str, Any] = {}
    for resource in asked["resources"]:
        path = folder / resource
        if path.is_dir():
            found = kustomized(path)
        else:
            found = {each["kind"]: each for each in yaml_text.load_all(path.read_text())}
        assert not made.keys() & found.keys(), "two of a kind: this test tells them apart by that"
        made |= found
    for patch in asked.get("patches", []):
        assert patch.keys() == {"target", "patch"}
        kind, name = patch["target"]["kind"], patch["target"]["name"]
        assert made[kind]["metadata"]["name"] == name
        made[kind] = jsonpatch.apply_patch(made[kind], yaml_text.load(patch["patch"]))
    return made


@pytest.mark.parametrize("name", ["raycluster.yaml", "rayjob.yaml", "storage.yaml"])
def test_every_field_is_one_that_its_kind_has(name: str) -> None:
    check(read(f"kuberay/{name}"))


def test_a_wrong_field_would_be_noticed() -> None:
    wrong = read("kuberay/raycluster.yaml")
    wrong["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["img"] = "x"
    with refuses(AssertionError, field="workerGroupSpecs.template.spec.containers.img"):
        check(wrong)


@pytest.mark.parametrize("folder", ["kuberay", "kuberay-gpu"])
def test_what_kustomize_makes_has_fields_that_the_kinds_have(folder: str) -> None:
    made = kustomized(DOCKER / folder)
    assert made.keys() == {"RayCluster", "PersistentVolumeClaim"}
    for document in made.values():
        check(document)


def test_the_gpu_cluster_differs_in_image_gpu_and_name() -> None:
    cpu, gpu = (kustomized(DOCKER / folder)["RayCluster"] for folder in ("kuberay", "kuberay-gpu"))
    group = gpu["spec"]["workerGroupSpecs"][0]
    container = group["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"].pop("nvidia.com/gpu") == "1"
    assert group["template"]["spec"].pop("tolerations")[0]["key"] == "nvidia.com/gpu"
    assert group["groupName"] == "spot-gpu"
    group["groupName"] = "spot"
    for part in (gpu["spec"]["headGroupSpec"], group):
        part["template"]["spec"]["containers"][0]["image"] = part["template"]["spec"]["containers"][0][
            "image"
        ].removesuffix("-gpu")
    assert gpu == cpu


def test_the_cluster_asks_for_its_token_and_its_pods_for_little() -> None:
    spec = read("kuberay/raycluster.yaml")["spec"]
    assert spec["rayVersion"] == pinned("ray")
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert {volume["name"] for volume in pod["volumes"]} == {
            mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]
        }
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"] == container["resources"]["limits"]
        # Credentials are files, of a secret.
        assert {entry["name"] for container in pod["containers"] for entry in container["env"]} == {
            "WARMBAND_HOME",
            "WARMBAND_STORE_FILE",
        }


def test_the_job_runs_on_that_cluster_and_on_data_that_is_there() -> None:
    job, cluster = read("kuberay/rayjob.yaml"), read("kuberay/raycluster.yaml")
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": cluster["metadata"]["name"]}
    file = job["spec"]["entrypoint"].split()[2]
    assert (ROOT / file.removeprefix("/home/ray/warmband/")).exists()
