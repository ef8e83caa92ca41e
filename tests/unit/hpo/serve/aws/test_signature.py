"""Signatures that botocore makes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hpo.serve import Keys
from hpo.serve.aws import AccessKey, ServiceError
from hpo.serve.aws.signature import Signed, Signer, signer_of
from tests.support.refusals import mentions

Sign = Callable[..., Signed]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys.json")


@pytest.fixture
def key(keys: Keys) -> AccessKey:
    return keys.add("alice", "act")


@pytest.fixture
def sign(key: AccessKey) -> Sign:
    def signed(
        path: str = "/", query: str = "", body: bytes = b"{}", service: str = "sagemaker", token: str = ""
    ) -> Signed:
        headers = {"X-Amz-Target": "SageMaker.ListTags", "Content-Type": "application/x-amz-json-1.1", "Host": "here:1"}
        url = f"http://here:1{path}" + (f"?{query}" if query else "")
        request = AWSRequest(method="POST", url=url, data=body, headers=headers)
        SigV4Auth(Credentials(key.id, key.secret, token or None), service, "eu-central-1").add_auth(request)
        sent = {name.lower(): [value] for name, value in request.headers.items()}
        return Signed(method="POST", path=path, query=query, headers=sent, body=body)

    return signed


def check(request: Signed, keys: Keys, later: timedelta = timedelta()) -> Signer:
    return signer_of(request, keys, "sagemaker", datetime.now(UTC) + later)


def altered(request: Signed, body: bytes | None = None, **headers: str | None) -> Signed:
    changed = {name.replace("_", "-"): [value] for name, value in headers.items() if value is not None}
    gone = [name.replace("_", "-") for name, value in headers.items() if value is None]
    kept = {name: values for name, values in request.headers.items() if name not in gone}
    return Signed(
        method=request.method,
        path=request.path,
        query=request.query,
        headers={**kept, **changed},
        body=request.body if body is None else body,
    )


def refusal(request: Signed, keys: Keys, later: timedelta = timedelta()) -> tuple[str, str]:
    with pytest.raises(ServiceError) as caught:
        check(request, keys, later)
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize(
    ("path", "query"),
    [("/", ""), ("/service/X/operation/Y", ""), ("/a%20b/", "b=2&a=1&a=0"), ("/", "x=a%2Fb%20c&empty=")],
)
def test_what_botocore_signs_is_taken(sign: Sign, keys: Keys, key: AccessKey, path: str, query: str) -> None:
    signer = check(sign(path, query), keys)
    assert (signer.key, signer.region) == (key, "eu-central-1")


def test_another_request_than_the_signed_one_is_refused(sign: Sign, keys: Keys) -> None:
    request = sign()
    for other in (
        altered(request, b"{} "),
        altered(request, x_amz_target="SageMaker.DeleteTags"),
        altered(request, host="there:1"),
    ):
        code, message = refusal(other, keys)
        assert code == "InvalidSignatureException"
        mentions(message, "signature", "AWS Secret Access Key")
    code, message = refusal(altered(request, x_amz_extra="1"), keys)
    assert code == "InvalidSignatureException"
    mentions(message, "x-amz-extra")


@pytest.mark.parametrize(("minutes", "bound"), [(16, "- 15 min"), (-16, "+ 15 min")])
def test_clocks_may_differ_by_a_quarter_of_an_hour(sign: Sign, keys: Keys, minutes: int, bound: str) -> None:
    request = sign()
    code, message = refusal(request, keys, timedelta(minutes=minutes))
    assert code == "InvalidSignatureException"
    mentions(message, "signature", bound)
    check(request, keys, timedelta(minutes=14 if minutes > 0 else -14))


def test_requests_without_a_right_signature_are_refused(sign: Sign, keys: Keys) -> None:
    request = sign()
    assert refusal(altered(request, authorization=None), keys)[0] == "MissingAuthenticationTokenException"
    for header in (
        "Bearer x",
        "AWS4-HMAC-SHA256 Credential=x",
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host",
    ):
        assert refusal(altered(request, authorization=header), keys)[0] == "IncompleteSignatureException"
    assert refusal(altered(request, x_amz_date="yesterday"), keys)[0] == "IncompleteSignatureException"
    mentions(refusal(sign(service="sts"), keys)[1], "Credential", "sagemaker")
    assert refusal(sign(token="session"), keys)[0] == "UnrecognizedClientException"


def test_a_key_that_is_gone_signs_nothing(sign: Sign, keys: Keys) -> None:
    other = Keys(keys.file)
    request = sign()
    assert check(request, other).key.name == "alice"
    keys.remove("alice")
    assert refusal(request, other)[0] == "UnrecognizedClientException"


def test_a_signature_that_is_no_ascii_is_refused(sign: Sign, keys: Keys) -> None:
    request = sign()
    (authorization,) = request.headers["authorization"]
    for wrong in ("é" * 64, "\udcff", "\xff"):
        changed = altered(request, authorization=authorization.rpartition("=")[0] + "=" + wrong)
        assert refusal(changed, keys)[0] == "InvalidSignatureException"
