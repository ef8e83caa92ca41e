"""Signatures of requests, Signature Version 4, checked against the keys of a file."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from hpo.serve.aws.errors import ServiceError
from hpo.serve.aws.keys import AccessKey, Keys

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW = timedelta(minutes=15)
"""By which a client's clock may differ from the server's."""

_STAMP = "%Y%m%dT%H%M%SZ"
_PARTS = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A request as its signature sees it.

    Args:
        method: of HTTP.
        path: as it was sent, with its escapes.
        query: likewise.
        headers: names in small letters, each with its values in order.
        body: as it was sent.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, Sequence[str]]
    body: bytes

    def header(self, name: str) -> str:
        """A header's value; empty where it is missing."""
        return ",".join(" ".join(value.split()) for value in self.headers.get(name, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Who has signed a request.

    Args:
        key: with what.
        region: for which region.
    """

    key: AccessKey
    region: str


def signer_of(request: Signed, keys: Keys, service: str, now: datetime) -> Signer:
    """Checks a request's signature.

    Args:
        request: the request.
        keys: that are known.
        service: for which it has to be signed.
        now: the time, in UTC.

    Raises:
        ServiceError: there is no signature, or it is not right.
    """
    authorization = request.header("authorization")
    if not authorization:
        raise ServiceError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
    scheme, _, rest = authorization.partition(" ")
    parts = dict(_PARTS.findall(rest))
    scope = parts.get("Credential", "").split("/")
    if scheme != ALGORITHM or len(parts) != 3 or len(scope) != 5 or scope[4] != "aws4_request":
        raise ServiceError(
            "IncompleteSignatureException",
            f"Authorization header has to be '{ALGORITHM} Credential=ID/DATE/REGION/SERVICE/aws4_request, "
            "SignedHeaders=..., Signature=...'",
        )
    id, date, region, scoped, _ = scope
    key = keys.find(id)
    if key is None or request.header("x-amz-security-token"):  # A session's token would be of another place's keys.
        raise ServiceError("UnrecognizedClientException", "The security token included in the request is invalid.", 403)
    if scoped != service:
        raise _wrong(f"Credential should be scoped to correct service: '{service}'.")
    stamp = request.header("x-amz-date")
    _check_time(stamp, date, now)
    names = parts["SignedHeaders"].split(";")
    unsigned = {"host", *(name for name in request.headers if name.startswith("x-amz-"))} - set(names)
    if unsigned:
        raise _wrong(f"these headers have to be signed and are not: {', '.join(sorted(unsigned))}")
    expected = _signature(request, names, key.secret, stamp, (date, region, scoped))
    if not hmac.compare_digest(expected.encode(), parts["Signature"].encode(errors="replace")):
        raise _wrong(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method. Consult the service documentation for details."
        )
    return Signer(key=key, region=region)


def _check_time(stamp: str, date: str, now: datetime) -> None:
    try:
        signed = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        message = f"X-Amz-Date is {stamp!r}; give the time as 20260131T235959Z"
        raise ServiceError("IncompleteSignatureException", message) from None
    if stamp[:8] != date:
        raise _wrong(f"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date: {date}, {stamp}")
    here = now.strftime(_STAMP)
    if signed < now - SKEW:
        bound = (now - SKEW).strftime(_STAMP)
        raise _wrong(f"Signature expired: {stamp} is now earlier than {bound} ({here} - 15 min.)")
    if signed > now + SKEW:
        bound = (now + SKEW).strftime(_STAMP)
        raise _wrong(f"Signature not yet current: {stamp} is still later than {bound} ({here} + 15 min.)")


def _signature(request: Signed, names: Sequence[str], secret: str, stamp: str, scope: tuple[str, str, str]) -> str:
    """The signature that the request ought to have; that of another body than its own is another."""
    query = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in _query(request.query))
    canonical = "\n".join(
        [
            request.method,
            quote(request.path, safe="/~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{request.header(name)}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    text = "\n".join(
        [ALGORITHM, stamp, f"{'/'.join(scope)}/aws4_request", hashlib.sha256(canonical.encode()).hexdigest()]
    )
    derived = f"AWS4{secret}".encode()
    for part in (*scope, "aws4_request"):
        derived = hmac.digest(derived, part.encode(), "sha256")
    return hmac.digest(derived, text.encode(), "sha256").hex()


def _query(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True)


def _wrong(message: str) -> ServiceError:
    return ServiceError("InvalidSignatureException", message, 403)
