"""Entries of a job's notices: a webhook or e-mail, its events, and names of the variables that hold its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from trainers.checking import did_you_mean, is_number, is_whole
from trainers.errors import ConfigurationError

EVENTS = ("ended", "failed", "stopped", "budget")
"""What notices are of: the job is Completed, Failed or Stopped, or has used a share of its budget."""

BUDGET_SHARE = 0.8
"""The share of `max_cost` or `max_runtime_in_seconds` that a notice is of where nothing is said."""

PREFIX = "WARMBAND_NOTICE_"
"""How the variables begin that entries may name: else a job file could send any secret of its driver away."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(rf"{PREFIX}[A-Z0-9_]+")
_ADDRESS = re.compile(r"[^\s@<>,;:\"()\[\]\\]+@[^\s@<>,;:\"()\[\]\\]+")
_HOST = re.compile(r"[A-Za-z0-9.:_-]+")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Base of entries.

    Args:
        events: which notices are sent: some of "ended" (Completed), "failed", "stopped" and "budget".
        budget_share: the share of `max_cost` or `max_runtime_in_seconds`, above 0 and at most 1, that "budget" is of.
    """

    kind: ClassVar[str]
    """Its word in a job file and in the record."""

    variables: ClassVar[tuple[str, ...]]
    """The fields that name environment variables."""

    events: Sequence[str] = EVENTS
    budget_share: float = BUDGET_SHARE

    def __post_init__(self) -> None:
        if isinstance(self.events, str) or not isinstance(self.events, Sequence) or not self.events:
            raise ConfigurationError(f"events is {self.events!r}; give a list of some of {', '.join(EVENTS)}")
        for event in self.events:
            if event not in EVENTS:
                hint = did_you_mean(event, EVENTS)
                raise ConfigurationError(f"events has {event!r}; give some of {', '.join(EVENTS)}{hint}")
        object.__setattr__(self, "events", tuple(dict.fromkeys(self.events)))
        if not is_number(self.budget_share) or not 0 < self.budget_share <= 1:
            raise ConfigurationError(f"budget_share is {self.budget_share!r}; give a number above 0 and at most 1")
        for field in self.variables:
            name = getattr(self, field)
            if name is not None and (not isinstance(name, str) or not _VARIABLE.fullmatch(name)):
                raise ConfigurationError(
                    f"{field} names no such variable; give the name of an environment variable, not a secret itself: "
                    f"{PREFIX} and then capital letters, digits and underscores"
                )

    def named(self) -> str:
        """The entry in words, without what may be secret."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """For the record; it names variables, and holds no secret."""
        return {"type": self.kind, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Webhook(Entry):
    """A URL that notices are posted to as JSON.

    Args:
        url: http or https, without user and query, which may be secret: the record keeps it.
        url_variable: in its place, the name of the environment variable that holds the URL, where that is a secret.
        secret_variable: the name of the environment variable with the secret that notices are signed with; None signs
            none.
        events: see `Entry`.
        budget_share: see `Entry`.

    Raises:
        ConfigurationError: a value is wrong.
    """

    kind: ClassVar[str] = "webhook"
    variables: ClassVar[tuple[str, ...]] = ("url_variable", "secret_variable")

    url: str | None = None
    url_variable: str | None = None
    secret_variable: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.url is None) == (self.url_variable is None):
            raise ConfigurationError("url and url_variable: give one of them")
        if self.url is not None:
            parts = checked_url(self.url, "url")
            if parts.query:
                raise ConfigurationError(
                    "url has a query, which may hold a key, and the record would keep it; put the URL into an "
                    "environment variable, and give url_variable"
                )

    def named(self) -> str:
        """See `Entry.named`: the host, or where that may be secret the variable."""
        return f"webhook, {urlsplit(self.url).hostname if self.url else self.url_variable}"


@dataclass(frozen=True, kw_only=True)
class Email(Entry):
    """Mail to addresses, by an SMTP server.

    Args:
        host: the server's name.
        port: its port.
        sender: the address that mail is from.
        to: the addresses that it goes to.
        starttls: encrypt, and check the server's certificate; a server that cannot is not used.
        user_variable: the name of the environment variable that holds the user; None logs in as nobody.
        password_variable: likewise the password.
        events: see `Entry`.
        budget_share: see `Entry`.

    Raises:
        ConfigurationError: a value is wrong.
    """

    kind: ClassVar[str] = "email"
    variables: ClassVar[tuple[str, ...]] = ("user_variable", "password_variable")

    host: str
    sender: str
    to: Sequence[str]
    port: int = 587
    starttls: bool = True
    user_variable: str | None = None
    password_variable: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.host, str) or not _HOST.fullmatch(self.host):
            raise ConfigurationError(f"host is {self.host!r}; give the name of an SMTP server")
        if not is_whole(self.port, 1, 65535):
            raise ConfigurationError(f"port is {self.port!r}; give a whole number from 1 to 65535")
        if isinstance(self.to, str) or not isinstance(self.to, Sequence) or not self.to:
            raise ConfigurationError(f"to is {self.to!r}; give a list of addresses")
        for name, address in (("sender", self.sender), *(("to", each) for each in self.to)):
            if not isinstance(address, str) or not address.isascii() or not _ADDRESS.fullmatch(address):
                raise ConfigurationError(f"{name} has {address!r}; give an address such as team@example.org")
        object.__setattr__(self, "to", tuple(self.to))
        if not isinstance(self.starttls, bool):
            raise ConfigurationError(f"starttls is {self.starttls!r}; give True or False")
        if (self.user_variable is None) != (self.password_variable is None):
            raise ConfigurationError("user_variable and password_variable go together; give both, or none")
        if self.user_variable is not None and not self.starttls:
            raise ConfigurationError("starttls is False, and the password would be sent as it is; leave it out")

    def named(self) -> str:
        """See `Entry.named`."""
        return f"e-mail, {self.host}"


KINDS: Mapping[str, type[Webhook] | type[Email]] = {each.kind: each for each in (Webhook, Email)}


def checked_url(url: object, what: str) -> SplitResult:
    """A URL's parts.

    Args:
        url: the URL.
        what: where it stands; its value is not in the error, as it may be secret.

    Raises:
        ConfigurationError: it is none that a notice is posted to.
    """
    remedy = "give a URL such as https://example.org/hook, of http or https, without a user, a password and a fragment"
    if not isinstance(url, str) or not url.isascii() or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ConfigurationError(f"{what} is no URL; {remedy}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{what} is no URL; {remedy}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigurationError(f"{what} is not of http or https; {remedy}")
    if "@" in parts.netloc or parts.fragment:
        raise ConfigurationError(f"{what} has a user, a password or a fragment; {remedy}")
    return parts


def check_notices(notices: object) -> dict[str, Webhook | Email]:
    """Entries by name, checked.

    Raises:
        ConfigurationError: they are none.
    """
    if notices is None:
        return {}
    if not isinstance(notices, Mapping):
        raise ConfigurationError(f"notices is {notices!r}; give names and entries, such as {{'ops': Webhook(url=...)}}")
    for name, entry in notices.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"notices has the name {name!r}; give at most 64 letters, digits, hyphens, dots and underscores"
            )
        if not isinstance(entry, Webhook | Email):
            raise ConfigurationError(f"notices has {entry!r} for {name!r}; give hpo.Webhook(...) or hpo.Email(...)")
    return dict(notices)


def entries_from_json(state: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Webhook | Email]:
    """Entries out of the record; of a field that a later Warmband wrote, nothing is known."""
    made: dict[str, Webhook | Email] = {}
    for name, values in (state or {}).items():
        kind = KINDS[values["type"]]
        known = {each.name for each in fields(kind)}
        made[name] = kind(**{key: value for key, value in values.items() if key in known})
    return made


def unset(entries: Mapping[str, Webhook | Email]) -> list[str]:
    """The variables that entries name and this process does not have, each once."""
    named = [getattr(entry, field) for entry in entries.values() for field in entry.variables]
    return list(dict.fromkeys(name for name in named if name and not os.environ.get(name)))
