"""Documents and acts of the REST API, on a record filled by hand."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from starlette.testclient import TestClient

from hpo.record import JobRow, Store
from hpo.sagemaker import Snapshot, describe
from hpo.serve.following import JobList
from tests.support.hpo.serve.rest import (
    Get,
    get,  # noqa: F401  # A fixture.
)
from tests.support.listed import job, with_untuned
from tests.support.recorded import record
from tests.support.refusals import mentions


def test_trials_come_in_pages(get: Get) -> None:
    for sort in ("number", "best"):
        seen, after = [], -1
        while after is not None:
            page = get(f"jobs/bank/trials?limit=2&sort={sort}&after_number={after}")
            seen += [trial["Number"] for trial in page["trials"]]
            after = page["next"]
        assert sorted(seen) == [0, 1, 2]
        assert seen == ([0, 1, 2] if sort == "number" else [1, 0, 2])


def test_jobs_are_searched_filtered_ordered_and_paged(store: Store, get: Get) -> None:
    job(store, "churn-1", values=[0.9], age=60, spec={"tags": [{"Key": "team", "Value": "shop"}]})
    job(store, "churn-2", values=[], age=30, status="Failed", reason="no gang")

    def names(query: str) -> list[str]:
        found, after = [], ""
        while after is not None:
            page = get(f"jobs?limit=1&{query}" + (f"&after={after}" if after else ""))
            found += [each["HyperParameterTuningJobName"] for each in page["jobs"]]
            after = page["next"]
        return found

    assert names("") == ["churn-2", "churn-1", "bank"]
    assert names("order=asc&sort=name") == ["bank", "churn-1", "churn-2"]
    assert names("sort=best") == ["churn-1", "bank", "churn-2"]
    assert names("sort=best&order=asc") == ["bank", "churn-1", "churn-2"]
    assert names("search=SHOP") == ["churn-1"]
    assert names("status=Failed,Stopped") == ["churn-2"]
    assert get("jobs?after=x", 400)["error"]["field"] == "after"


def test_curves_are_thinned_with_their_ends(store: Store, get: Get) -> None:
    record(store, "curved", 8, steps=40)
    curves = get("jobs/curved/curves?points=5")
    assert curves["metric"] == "validation:auc"
    assert all(len(steps) == len(values) <= 5 for steps, values in zip(curves["steps"], curves["values"], strict=True))
    whole = get("jobs/curved/curves?points=1000")
    assert [(steps[0], steps[-1]) for steps in curves["steps"]] == [(s[0], s[-1]) for s in whole["steps"]]
    assert sum(map(len, whole["steps"])) == sum(row.trial_id != "untuned" for row in store.reports("curved"))
    assert get("jobs/curved/curves?metric=validation:auc&points=1000")["trials"] == whole["trials"]
    assert get("jobs/curved/curves?metric=no:such")["trials"] == []


def test_the_untuned_run_stands_beside_the_best_trial(store: Store, get: Get) -> None:
    with_untuned(store, "worse", 0.8)
    with_untuned(store, "better", 0.745)
    with_untuned(store, "stopped", 0.8, stopped={"by": "max_trial_runtime", "told": True}, status="Stopped")
    found = get("jobs/worse")
    assert found["UntunedTrainingJob"]["Resource"] == 30
    assert found["BestTrainingJob"]["TrainingJobName"] == found["UntunedTrainingJob"]["TrainingJobName"] == "untuned"
    assert found["Gain"]["outcome"] == "worse"
    assert get("jobs/worse/summary")["BestObjectiveValue"] == 0.8
    assert get("jobs/worse/trials/untuned")["HyperParameters"] == {"eta": 0.3}
    found = get("jobs/better")
    assert found["BestTrainingJob"]["TrainingJobName"] == "better-001"
    assert found["Gain"]["outcome"] == "no difference"
    found = get("jobs/stopped")
    assert found["BestTrainingJob"]["TrainingJobName"] == "stopped-001"
    assert "Gain" not in found
    assert get("jobs/stopped/summary")["BestObjectiveValue"] == 0.75


def test_a_document_that_has_not_changed_is_not_sent_again(client: TestClient, tokens: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {tokens['look']}"}
    tag = client.get("/api/jobs/bank", headers=headers).headers["etag"]
    assert client.get("/api/jobs/bank", headers={**headers, "If-None-Match": tag}).status_code == 304


def test_what_is_not_there_is_said(get: Get) -> None:
    assert get("jobs/banc", 404)["error"]["type"] == "NotFound"
    assert get("jobs/bank/trials/none", 404)["error"]["type"] == "NotFound"
    assert get("nowhere", 404)["error"]["type"] == "NotFound"
    assert get("jobs?limit=0", 400)["error"]["field"] == "limit"
    assert get("jobs/bank/lines") == {"lines": []}
    described = get("openapi.json")["paths"]
    assert "/jobs/{job}/stop" in described
    assert "requestBody" in described["/jobs/{job}/trials"]["post"]


def test_gangs_say_what_each_does_now(store: Store, get: Get) -> None:
    now = {"g0": {"does": "serves", "trial": "busy-003", "places": {"left": {"2 cores": 3}}}}
    summary = {"held": {"g0": 3, "g1": 2}, "gangs_now": now, "gangs_starting": 1}
    store.create_job(JobRow(name="busy", created_at=1000.0, spec=store.job("bank").spec, summary=summary))
    found = get("jobs/busy/gangs")
    does = {each["gang"]: (each["does"], each["serves"], each["places"]) for each in found["gangs"]}
    assert does == {"g0": ("serves", "busy-003", {"left": {"2 cores": 3}}), "g1": ("held", "", {})}
    assert found["starting"] == 1


def test_a_trial_has_the_command_by_hand_that_the_summary_has_of_it(store: Store, get: Get) -> None:
    job(store, "made", values=[0.9, 0.8])
    with store.writer("made") as writer:
        writer.job(summary={"best": {"trial": "made-000", "command": "python train.py --text '<b>'", "forked": True}})
    assert get("jobs/made/trials/made-000")["ByHand"] == {"Command": "python train.py --text '<b>'", "Forked": True}
    assert get("jobs/made/trials/made-001")["ByHand"] is None


def test_a_snapshot_in_memory_is_that_of_the_record(store: Store) -> None:
    from hpo.serve.following import FollowedJob

    record(store, "kept", 12)
    followed = FollowedJob(store, "kept")
    followed.look()
    there = Snapshot.of(store, store.job("kept"))
    assert followed.snapshot().trial_summaries() == there.trial_summaries()
    assert followed.described()["Summary"] == describe(there.job, there.trials, there.acts)["Summary"]


DAMAGES = (
    "spec = '{'",
    "spec = '[]'",
    "spec = '{}'",
    "summary = '\"x\"'",
    "created_at = 'x'",
    "spec = json_set(spec, '$.repeats', 'x')",
)


def test_malformed_rows_are_named_and_hide_no_other(store: Store, tmp_path: Path, get: Get) -> None:
    spec = store.job("bank").spec
    names = [f"bad{number}" for number in range(len(DAMAGES))]
    for name in (*names, "late"):
        store.create_job(JobRow(name=name, created_at=1000.0, spec=spec))
    listed = JobList(store)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        for name, damage in zip(names, DAMAGES, strict=True):
            connection.execute(f"UPDATE jobs SET {damage} WHERE name = ?", (name,))
        connection.commit()
        listed.look()
        assert (sorted(listed.lines), sorted(listed.malformed)) == (["bank", "late"], names)
        assert listed.look() == [], "a malformed row is read again and again"
        page = get("jobs")
        assert [each["HyperParameterTuningJobName"] for each in page["jobs"]] == ["bank", "late"]
        assert (page["total"], page["malformed"]) == (2, names)
        for name in names:
            told = get(f"jobs/{name}", 409)["error"]
            assert told["type"] == "Malformed"
            mentions(told["message"], "row", name, "remove")
        assert get("jobs/none", 404)["error"]["type"] == "NotFound"
        connection.execute("UPDATE jobs SET spec = '{}', heartbeat = heartbeat + 1 WHERE name = 'late'")
        connection.execute(
            "UPDATE jobs SET spec = ?, heartbeat = heartbeat + 1 WHERE name = 'bad0'", (json.dumps(spec),)
        )
        connection.execute("DELETE FROM jobs WHERE name = 'bad1'")
        connection.commit()
    listed.look()
    assert (sorted(listed.lines), sorted(listed.malformed)) == (["bad0", "bank"], [*names[2:], "late"])


def test_a_body_that_is_no_json_is_refused_in_plain_words(client: TestClient, tokens: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {tokens['act']}"}
    for body in (b'{"a": 1,}', b"\xff{", b'{"a": ' + b"1" * 5000 + b"}", b"[" * 5000):
        answer = client.post("/api/jobs/bank/trials", content=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "Invalid")
        told = answer.json()["error"]["message"]
        assert not re.search(r"codec|Expecting|sys\.|recursion|Error", told), told
