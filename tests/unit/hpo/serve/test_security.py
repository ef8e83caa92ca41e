"""Tokens, sessions and rates, and what the guard lets through."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.testclient import TestClient

from hpo.serve import ServeSettings, Tokens
from hpo.serve.security import Codes, Rates, Sessions
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_file_of_tokens_holds_digests_alone_and_is_its_owner_s(tmp_path: Path) -> None:
    file = tmp_path / "serve" / "tokens.json"
    tokens = Tokens(file)
    token = tokens.add("alice", "act")
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (found := tokens.find(token)) is not None
    assert (found.name, found.rights) == ("alice", "act")
    assert tokens.find("wb_other") is None
    with refuses(ConfigurationError, field=(str(file), "token"), value="alice"):
        tokens.add("alice", "look")
    tokens.remove("alice")
    assert tokens.find(token) is None


def test_a_file_that_is_none_is_refused_with_its_remedy(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"tokens": [{"name": "a", "rights": "all", "sha256": "%s"}]}' % ("0" * 64))
    with refuses(ConfigurationError, field=(str(file), "token", "'a'", "rights"), value="all", remedy=("look", "act")):
        Tokens(file)
    file.write_text("nothing")
    with refuses(ConfigurationError, field=str(file), remedy="hpo serve token NAME"):
        Tokens(file)


def test_tokens_that_are_made_at_once_are_all_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    with ThreadPoolExecutor(8) as several:  # A file lock is held by an open file, as two processes have two.
        made = list(several.map(lambda name: Tokens(file).add(name, "look"), map(str, range(16))))
    tokens = Tokens(file)
    assert len(tokens) == 16
    assert all(tokens.find(token) for token in made)


def test_a_broken_file_of_tokens_lets_nobody_in_until_it_is_whole(
    client: TestClient, tokens: dict[str, str], settings: ServeSettings
) -> None:
    tokens_file = settings.tokens_file
    text = tokens_file.read_text()
    tokens_file.write_text(text[:-10])
    for _ in range(2):
        refused = client.get("/api/jobs", headers=bearer(tokens["look"]))
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "Unavailable")
        assert str(tokens_file) not in refused.text
    tokens_file.write_text(text)
    assert client.get("/api/jobs", headers=bearer(tokens["look"])).status_code == 200


def test_a_session_outlives_the_server_and_ends_with_its_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.find(tokens.add("alice", "look"))
    assert token is not None
    cookie = Sessions(tokens, tmp_path / "key").begin(token, now=1000.0)
    again = Sessions(tokens, tmp_path / "key")
    assert again.find(cookie, now=1001.0) == token
    assert again.find(cookie, now=1000.0 + 8 * 86400) is None
    for forged in (cookie[:-1], "x" + cookie, "", "...", f"{cookie}.x", "é.1.2.3"):
        assert again.find(forged, now=1001.0) is None
    tokens.remove("alice")
    assert again.find(cookie, now=1001.0) is None


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    now = [0.0]
    rates = Rates(2.0, 4.0, lambda: now[0])
    assert [rates.wait("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert rates.wait("b") == 0
    now[0] = 0.5
    assert [rates.wait("a"), rates.wait("a")] == [0, 0.5]


def test_nothing_is_served_without_a_token_or_under_another_name(client: TestClient, tokens: dict[str, str]) -> None:
    refused = client.get("/api/jobs")
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "Unauthenticated")
    assert client.get("/api/jobs", headers=bearer("wb_wrong")).status_code == 401
    assert client.get("/api/jobs", headers=bearer(tokens["look"])).status_code == 200
    rebound = client.get("/api/jobs", headers={**bearer(tokens["look"]), "Host": "evil.example"})
    assert rebound.status_code == 421
    assert client.get("/healthz").status_code == 200


def test_every_response_has_the_headers_of_security(client: TestClient) -> None:
    for path in ("/api/jobs", "/login", "/healthz", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_who_may_look_may_not_act(client: TestClient, tokens: dict[str, str]) -> None:
    refused = client.post("/api/jobs/bank/stop", headers=bearer(tokens["look"]))
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "Forbidden")
    assert client.post("/api/jobs/bank/stop", headers=bearer(tokens["act"])).status_code == 202


def log_in(client: TestClient, token: str) -> int:
    return client.post("/login", data={"token": token}, follow_redirects=False).status_code


def test_a_browser_logs_in_and_acts_with_its_csrf_token_alone(client: TestClient, tokens: dict[str, str]) -> None:
    assert log_in(client, tokens["act"]) == 303
    told = client.get("/api/session").json()
    assert (told["name"], told["rights"]) == ("actor", "act")
    assert client.post("/api/jobs/bank/stop").json()["error"]["type"] == "Forgery"
    csrf = {"X-CSRF-Token": told["csrf"]}
    assert client.post("/api/jobs/bank/stop", headers={**csrf, "Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/jobs/bank/stop", headers={**csrf, "Origin": "http://localhost"}).status_code == 202
    cookie = {"Cookie": f"warmband={client.cookies['warmband']}"}
    client.post("/logout", follow_redirects=False)
    assert client.get("/api/session").status_code == 401
    assert client.get("/api/session", headers=cookie).status_code == 401, "who has kept the cookie is in still"


def test_a_session_that_was_ended_is_over_for_all_processes_and_is_forgotten_in_time(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.find(tokens.add("alice", "act"))
    assert token is not None
    sessions, other = (Sessions(tokens, tmp_path / "key") for _ in range(2))
    cookie, kept = sessions.begin(token), sessions.begin(token)
    sessions.end(cookie)
    for each in (sessions, other):
        assert each.find(cookie) is None
        assert each.find(kept) == token
    sessions.end("x.y.z")
    (ended,) = (tmp_path / "ended-sessions").iterdir()
    assert token.digest not in ended.name + ended.read_text()
    os.utime(ended, (1000.0, 1000.0))
    sessions.end(kept)
    assert [file.name for file in (tmp_path / "ended-sessions").iterdir()] != [ended.name]
    assert not ended.exists()


def test_a_code_is_good_once_and_for_a_while(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.find(tokens.add("alice", "act"))
    assert token is not None
    several = [Codes(tokens, tmp_path / "codes") for _ in range(8)]
    code = several[0].begin(token)
    with ThreadPoolExecutor(8) as pool:  # As processes of a server that are asked at once.
        found = list(pool.map(lambda codes: codes.take(code), several))
    assert [each for each in found if each] == [token]
    late = several[0].begin(token)
    assert several[0].take(late, now=time.time() + 601) is None
    assert several[0].take("../key") is None
    assert not list((tmp_path / "codes").iterdir())
    removed = several[0].begin(token)
    assert removed not in "".join(file.name + file.read_text() for file in (tmp_path / "codes").iterdir())
    tokens.remove("alice")
    assert several[0].take(removed) is None


def test_a_link_logs_in_once_and_no_token_in_a_url_does(
    client: TestClient, settings: ServeSettings, tokens: dict[str, str]
) -> None:
    assert client.get(f"/login?token={tokens['act']}", follow_redirects=False).status_code == 200
    assert client.get("/api/session").status_code == 401
    known = Tokens(settings.tokens_file)
    codes, token = Codes(known, settings.folder / "login-codes"), known.find(tokens["act"])
    assert token is not None
    link = f"/login?code={codes.begin(token)}"
    for site in ("cross-site", "same-site"):  # Another site's page would log its visitors in under its own token.
        sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert client.get(link, headers=sent, follow_redirects=False).status_code == 403
    assert client.head(link, follow_redirects=False).status_code == 200, "a scanner of links has used it up"
    assert client.get(link, headers={"Sec-Fetch-Site": "none"}, follow_redirects=False).status_code == 303
    assert client.get("/api/session").json()["name"] == "actor"
    assert client.get(link, follow_redirects=False).status_code == 401


def test_requests_of_other_sites_are_refused_and_links_to_the_console_are_not(
    client: TestClient, tokens: dict[str, str]
) -> None:
    def asked(path: str, mode: str, method: str = "GET") -> int:
        sent = {**bearer(tokens["act"]), "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
        return client.request(method, path, headers=sent, follow_redirects=False).status_code

    assert asked("/", "navigate") == asked("/login", "navigate") == 200
    assert {asked("/api/jobs", mode) for mode in ("navigate", "cors", "no-cors")} == {403}
    assert {asked(path, "no-cors") for path in ("/", "/healthz", "/static/console.css")} == {403}
    assert {asked(path, "navigate", "POST") for path in ("/login", "/logout", "/api/jobs/bank/stop")} == {403}


def test_wrong_tokens_of_an_address_are_few(client: TestClient) -> None:
    codes = [client.get("/api/jobs", headers=bearer(f"wb_{number}")).status_code for number in range(30)]
    assert codes[:20] == [401] * 20
    assert codes[-1] == 429
    refused = client.post("/login", data={"token": "wb_x"})
    assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (429, True)


def test_a_control_character_is_refused_where_no_name_has_one(client: TestClient, tokens: dict[str, str]) -> None:
    headers = bearer(tokens["act"])
    for path in ("/api/jobs/bank/curves?metric=%00", "/api/jobs/ba%07nk"):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "Invalid")


def test_wrong_settings_are_named() -> None:
    with refuses(ConfigurationError, field="port", value=99999, remedy="65535"):
        ServeSettings(port=99999)
    assert not ServeSettings(host="0.0.0.0").on_loopback
    assert ServeSettings(host="::1").on_loopback


def test_a_client_of_sagemakers_is_told_the_option_that_the_server_lacks(client: TestClient) -> None:
    called = {"X-Amz-Target": "SageMaker.ListHyperParameterTuningJobs", "Content-Type": "application/x-amz-json-1.1"}
    answer = client.post("/", headers=called, content="{}")
    assert answer.status_code == 403
    told = answer.json()
    assert told["__type"].endswith("AccessDeniedException")
    mentions(told.get("message") or told["Message"], "--aws-keys", "hpo serve key NAME")
    assert client.post("/", content="{}").status_code == 405, "somebody else is told nothing of it"
