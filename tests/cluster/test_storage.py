"""Paths that not every machine sees are refused; shared folders and object stores serve gangs on several machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.cluster.drive import table
from tests.support.cluster.helper_machines import Machines
from tests.support.cluster.jobs import Job
from tests.support.cluster.ray_machines import until

REFUSED = """
import io, json, sys, time
import ray
from rich.console import Console
from ray.util import placement_group_table
from hpo.store import Store
from tests.support.cluster.drive import table, tuner
from trainers import ConfigurationError

base, own = sys.argv[1:]
store = f"sqlite:///{base}/refused.db"
table(60, 1).to_csv(f"{own}/train.csv", index=False)
ray.init(log_to_driver=False)
earlier = set(placement_group_table())  # Ray keeps the groups that are no more.
said = []
for number, (storage, inputs) in enumerate(
    [(f"{own}/models", {"train": table(60, 1), "validation": table(60, 2)}),
     (None, {"train": table(60, 1), "validation": table(60, 2)}),
     (f"{base}/shared", {"train": f"{own}/train.csv", "validation": table(60, 2)})]
):
    began = time.perf_counter()
    job = tuner({"store": store, "storage_path": storage}, Console(file=io.StringIO()))
    try:
        job.fit(inputs, job_name=f"refused-{number}")
    except ConfigurationError as error:
        said.append([str(error), time.perf_counter() - began])
    with Store(store) as record:
        assert record.job(f"refused-{number}").status == "Failed"
        assert not record.trials(f"refused-{number}")
assert set(placement_group_table()) == earlier, "a gang was started"
print(json.dumps(said))
"""


def test_what_only_the_drivers_machine_sees_is_refused_before_anything_is_trained(machines: Machines) -> None:
    if not machines.own_disks:
        pytest.skip("machines without namespaces share their disks")
    ran = machines.run(["python", "-c", REFUSED, machines.base, machines.private], timeout=240)
    assert ran.returncode == 0, ran.stdout
    (given, _), (default, _), (file, _) = json.loads(ran.stdout.splitlines()[-1])
    others = ", ".join(sorted(machine.address for machine in machines.machines[1:]))
    remedy = "give a folder that all nodes mount at this path, or a URI (s3://, gs://)"
    for error, path in ((given, machines.private / "models"), (default, machines.private / "home" / "jobs")):
        assert error.startswith(f"on nodes {others}: storage_path '{path}/refused-"), error
        assert error.endswith(remedy)
    expected = f"channel 'train': '{machines.private}/train.csv' is not there; {remedy}, or rows in memory"
    assert file == f"on nodes {others}: {expected}"
    # What was written to find out is taken away again.
    left = machines.run(
        ["find", machines.private / "models", machines.base / "shared", "-name", ".warmband-*"], timeout=30
    )
    assert ".warmband-" not in left.stdout


PUT = """
import json, pathlib, sys
from trainers import storage
base, folder, places = sys.argv[1:]
storage.check_writable(folder)
for name, uri in json.loads(places).items():
    storage.write(uri, pathlib.Path(base, f"{name}.csv").read_bytes())
"""


@pytest.fixture
def bucket(machines: Machines) -> Iterator[str]:
    """A URI on an S3-compatible server beside the head, `{}` for the key; the keys to it are in the environment."""
    if not machines.own_network:
        pytest.skip("a server for machines without namespaces would listen to more than them")
    port = 5000  # Of the machine's own, where nothing else listens.
    address = f"http://{machines.head.address}:{port}"
    with (machines.base / "s3.log").open("w") as log:
        server = machines.start(["python", "-m", "moto.server", "-H", machines.head.address, "-p", str(port)], log)
    answers = ["python", "-c", f"import urllib.request; urllib.request.urlopen('{address}', timeout=5)"]
    try:
        until(lambda: machines.run(answers, timeout=30).returncode == 0, "the S3 server", 60)
        options = f"endpoint_override={quote(address, safe='')}&region=us-east-1&allow_bucket_creation=true"
        yield f"s3://warmband/{{}}?{options}"
    finally:
        machines.end(server)


def test_a_job_reads_and_writes_an_object_store_from_every_machine(machines: Machines, bucket: str) -> None:
    table(600, 1).to_csv(machines.base / "train.csv", index=False)
    table(300, 2).to_csv(machines.base / "validation.csv", index=False)
    inputs = {name: bucket.format(f"data/{name}.csv") for name in ("train", "validation")}
    command = ["python", "-c", PUT, machines.base, bucket.format("data"), json.dumps(inputs)]
    ran = machines.run(command, timeout=60)
    assert ran.returncode == 0, ran.stdout
    places = {"storage_path": bucket.format("jobs"), "inputs": inputs, "placement": "SPREAD", "trials": 6}
    job = Job(machines, name="object-store", workers=3, holds=1, **places)
    job.until_held()
    assert job.used() == {machine.name for machine in machines.machines}
    job.release()
    answer = job.answer()
    assert answer.checkpoint.startswith("s3://warmband/jobs/object-store/")
    assert len(answer.model) == 64
