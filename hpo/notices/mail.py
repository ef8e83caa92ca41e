"""Mail of a notice by an SMTP server, as plain text."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate

from hpo.notices.attempts import NotNowError, RefusedError
from hpo.notices.entries import Email
from hpo.notices.notice import Notice
from hpo.notices.webhook import variable


def mail(entry: Email, notice: Notice, seconds: float) -> None:
    """Mails a notice once.

    Args:
        entry: how, and to whom.
        notice: the notice.
        seconds: how long each step of it may take.

    Raises:
        NotNowError: the server did not take it, and another attempt may go better.
        RefusedError: no attempt will, or the server took it for some of the addresses alone.
    """
    login = [variable(name) for name in (entry.user_variable, entry.password_variable) if name]
    message = composed(entry, notice)
    try:
        with smtplib.SMTP(entry.host, entry.port, timeout=seconds) as server:
            if entry.starttls:
                server.starttls(context=ssl.create_default_context())
            if login:
                server.login(*login)
            refused = server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise (NotNowError if min(codes) < 500 else RefusedError)(
            f"it refused all addresses with {min(codes)}"
        ) from None
    except smtplib.SMTPResponseException as error:
        raise (NotNowError if error.smtp_code < 500 else RefusedError)(f"it answered {error.smtp_code}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise RefusedError(str(error)) from None
    except ssl.SSLCertVerificationError as error:
        raise RefusedError(f"its certificate is not to be trusted: {error.verify_message}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotNowError(f"no answer: {getattr(error, 'strerror', None) or type(error).__name__}") from None
    if refused:
        raise RefusedError(f"it refused {len(refused)} of {len(entry.to)} addresses, and took it for the others")


def composed(entry: Email, notice: Notice) -> EmailMessage:
    """A notice as a message, whose id is the notice's: servers and readers may tell by it what came twice."""
    message = EmailMessage()
    message["Subject"] = notice.subject()
    message["From"] = entry.sender
    message["To"] = ", ".join(entry.to)
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{notice.id}@warmband>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice.text())
    return message
