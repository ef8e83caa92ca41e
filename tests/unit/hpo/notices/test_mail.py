"""Mail to a real server, encrypted and not, and what names with HTML or line ends become in it."""

from __future__ import annotations

import datetime
import ssl
import time
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hpo import Email
from hpo.notices.attempts import attempted
from hpo.notices.mail import mail
from tests.support.noticed import notice
from tests.support.receivers import Mailbox, mailbox
from tests.support.refusals import mentions

TEAM = ["one@example.org", "two@example.org"]


def entry(box: Mailbox, **options: Any) -> Email:
    given = {"starttls": False, "sender": "hpo@example.org", "to": TEAM, "host": "localhost"}
    return Email(**{**given, "host": "127.0.0.1", "port": box.port, **options})


def sent(made: Email, **fields: Any) -> str:
    what = notice(made, **fields)
    return attempted(lambda step: mail(made, what, step), time.monotonic() + 10.0)


def text(message: EmailMessage) -> list[str]:
    return message.get_content().splitlines()


def test_a_notice_is_mailed_as_plain_text(box: Mailbox) -> None:
    best = {"trial": "job-007", "value": 0.75, "hyperparameters": {"eta": 0.5}}
    assert not sent(entry(box), status="Completed", summary={"best": best})
    [message] = box.mail
    assert box.recipients == [TEAM]
    mentions(message["Subject"], "Warmband", "job", "Completed")
    assert message["From"] == "hpo@example.org"
    assert message["Message-ID"] == f"<{notice(entry(box), status='Completed').id}@warmband>"
    assert message.get_content_type() == "text/plain"
    [line] = [line for line in text(message) if "job-007" in line]
    mentions(line, "validation:auc", 0.75)
    [line] = [line for line in text(message) if "eta" in line.split(":")[0].split()]
    mentions(line, 0.5)


def test_html_and_line_ends_in_names_stay_text_in_their_line(box: Mailbox) -> None:
    evil = "<script>alert(1)</script>\r\nBcc: all@example.org\r\n\r\nhello"
    best = {"trial": "job-007", "value": 0.75, "hyperparameters": {f"eta{evil}": evil}}
    assert not sent(entry(box), reason=evil, summary={"best": best})
    [message] = box.mail
    assert message.get_content_type() == "text/plain"
    assert message["Bcc"] is None
    assert box.recipients == [TEAM]
    assert not [line for line in text(message) if line.startswith(("Bcc", "hello"))]
    assert [line for line in text(message) if line.endswith("<script>alert(1)</script>")]


def test_what_may_go_better_is_tried_again_with_the_same_id(box: Mailbox) -> None:
    box.answers = ["451 later", "421 later"]
    assert not sent(entry(box))
    assert len(box.mail) == 1


def test_what_will_not_go_better_is_not(box: Mailbox) -> None:
    box.answers = ["554 spam", "554 spam"]
    mentions(sent(entry(box)), 554)
    assert box.answers == ["554 spam"]


def test_refused_addresses_are_counted(box: Mailbox) -> None:
    box.refused = TEAM[:1]
    mentions(sent(entry(box)), 1, 2, "addresses")
    box.refused = TEAM
    mentions(sent(entry(box)), 550, "addresses")
    assert box.recipients == [TEAM[1:]]


def test_a_server_that_cannot_encrypt_gets_nothing(box: Mailbox) -> None:
    assert "STARTTLS" in sent(entry(box, starttls=True))
    assert not box.mail


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with the key and the certificate of `localhost`, which signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "localhost.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


def test_user_and_password_go_encrypted_and_to_a_server_alone_that_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bytes, bytes]] = []

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: LoginPassword) -> AuthResult:
        asked.append((data.login, data.password))
        return AuthResult(success=data.password == b"hunter2", handled=False)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    options = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": authenticate}
    monkeypatch.setenv("WARMBAND_NOTICE_USER", "hpo")
    monkeypatch.setenv("WARMBAND_NOTICE_PASSWORD", "hunter2")
    names = {"user_variable": "WARMBAND_NOTICE_USER", "password_variable": "WARMBAND_NOTICE_PASSWORD"}
    with mailbox(**options) as box:
        made = entry(box, host="localhost", starttls=True, **names)
        mentions(sent(made), "certificate")
        assert not asked
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert not sent(made)
        assert len(box.mail) == 1
        monkeypatch.setenv("WARMBAND_NOTICE_PASSWORD", "hunter3")
        mentions(sent(made), 535)
        monkeypatch.delenv("WARMBAND_NOTICE_PASSWORD")
        mentions(sent(made), "WARMBAND_NOTICE_PASSWORD")
    assert [*dict.fromkeys(asked)] == [(b"hpo", b"hunter2"), (b"hpo", b"hunter3")]
