"""Files that commands write: a first job, the schema, the reference; and how commands say ages and values."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from hpo import HyperparameterTuner
from hpo.job_file.reading import json_schema, read_job
from tests.support import yaml_text
from tests.support.listed import hpo
from tests.support.refusals import mentions

ROOT = Path(__file__).resolve().parents[4]
BANK = ROOT / "experiments" / "bank-marketing.yaml"


def test_init_writes_a_job_and_never_over_another(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    mentions(hpo("init", str(file), columns=200), f"hpo tune {file}")
    written = file.read_text()
    assert HyperparameterTuner(**read_job(file).arguments()).plan().trials == 20
    file.write_text("mine")
    mentions(hpo("init", str(file), code=2), str(file), "--force")
    assert file.read_text() == "mine"
    hpo("init", str(file), "--force", columns=200)
    assert file.read_text() == written
    gone = str(tmp_path / "gone" / "job.yaml")
    mentions(hpo("init", gone, code=2), gone, "No such file or directory")


def test_the_schema_takes_good_jobs_and_refuses_bad_ones(tmp_path: Path) -> None:
    schema = json.loads(hpo("schema"))
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    file = tmp_path / "job.yaml"
    hpo("init", str(file), columns=200)
    validator = jsonschema.Draft202012Validator(schema)
    for good in (file, BANK):
        assert not list(validator.iter_errors(yaml_text.load(good.read_text())))
    bad = yaml_text.load(BANK.read_text())
    bad["tuning"]["max_job"] = 3
    bad["trainer"]["num_workers"] = -1
    assert len(list(validator.iter_errors(bad))) == 2
    for definition in schema["$defs"].values():
        for name, field in definition["properties"].items():
            assert field["description"], name
