"""Places that jobs of clients may use: folders that they write to, and hosts that they ask or send to.

A job file comes from whoever has a token that may act, and its job has the server's files, network and secrets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from trainers import storage
from trainers.errors import ConfigurationError
from trainers.home import home

_BUCKETS = ("s3", "gs", "gcs")
"""Schemes whose URIs name a bucket where others name a host."""

_WRITTEN = ("storage_path", "trackers.tensorboard.folder", "trackers.wandb.folder")
"""Keys of job files that name a folder which is written to."""

_NOT_ASKED = ("trainer", "store", "tags", "Tags", "Environment", "HyperParameters", "StaticHyperParameters", "notices")
"""Keys below which texts are no places of Warmband's: the user's program gets them, or people read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Places that the server's settings list.

    Args:
        roots: folders or URIs below which jobs may write, beside `WARMBAND_HOME/jobs`. While no URI is listed, jobs may
            write to any bucket that the server's own credentials open.
        hosts: hosts that jobs may ask or send to, each with the names of the variables whose secrets it may get.
    """

    roots: tuple[str, ...] = ()
    hosts: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, roots: Sequence[str] = (), hosts: Sequence[str] = ()) -> Self:
        """The places of a command line.

        Args:
            roots: see `Places`.
            hosts: each "HOST" or "HOST=VARIABLE,VARIABLE".
        """
        bound: dict[str, frozenset[str]] = {}
        for each in hosts:
            host, _, names = each.partition("=")
            given = {name.strip() for name in names.split(",")} - {""}
            bound[host.strip().lower()] = bound.get(host.strip().lower(), frozenset()) | given
        return cls(roots=tuple(map(storage.absolute, roots)), hosts=bound)

    def to_json(self) -> dict[str, Any]:
        """For another process; `of_json` reads it."""
        return {"roots": list(self.roots), "hosts": {host: sorted(names) for host, names in self.hosts.items()}}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        """The places of `to_json`."""
        return cls(
            roots=tuple(given["roots"]), hosts={host: frozenset(names) for host, names in given["hosts"].items()}
        )

    def check(self, job: Mapping[str, Any]) -> None:
        """Refuse a job that would use other places.

        Args:
            job: a job file, or a request of SageMaker's protocol, as JSON.

        Raises:
            ConfigurationError: it names a folder or a host that is not listed, or a secret for another host.
        """
        for name, notice in (job.get("notices") or {}).items():
            self._check_notice(f"notices.{name}", notice)
        for path, text in _texts(job):
            if path in _WRITTEN:
                self._check_written(path, text)
            if host := _host_of(text):
                self._check_host(path, host)

    def _check_written(self, path: str, place: str) -> None:
        local = storage.local_path(place)
        if local is None:
            listed = [root for root in self.roots if storage.local_path(root) is None]
            if not listed or any(_is_below(place.partition("?")[0], root.partition("?")[0]) for root in listed):
                return
        else:
            real = os.path.realpath(local)
            roots = [str(home() / "jobs"), *filter(None, map(storage.local_path, self.roots))]
            if any(_is_below(real, os.path.realpath(root)) for root in roots):
                return
        raise ConfigurationError(
            f"{path} is {storage.shown(place)!r}, where jobs of this server may not write; leave it out, or have the "
            f"server started with: hpo serve --root {storage.shown(place)}"
        )

    def _check_host(self, path: str, host: str) -> None:
        if host not in self.hosts:
            raise ConfigurationError(
                f"{path} names the host {host!r}, which jobs of this server may not ask or send to; leave it out, or "
                f"have the server started with: hpo serve --allow-host {host}"
            )

    def _check_notice(self, path: str, notice: Mapping[str, Any]) -> None:
        variable = notice.get("url_variable")
        url = os.environ.get(variable, "") if variable else notice.get("url") or ""
        host = (notice.get("host") or _host_of(url) or "").lower()
        if not host:  # A variable that is not set here: the job's driver may have it.
            raise ConfigurationError(
                f"{path} is sent to the URL in {variable}, which is not set for this server; set it"
            )
        self._check_host(path, host)
        for key, secret in notice.items():
            if key.endswith("_variable") and secret and secret not in self.hosts[host]:
                raise ConfigurationError(
                    f"{path}.{key} names {secret}, whose secret the host {host!r} may not get; leave it out, or have "
                    f"the server started with: hpo serve --allow-host {host}={secret}"
                )


NO_PLACES = Places()
"""The places of a server whose settings list neither roots nor hosts."""


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text in a JSON value that names a place or may, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key in _NOT_ASKED:
                continue
            yield from _texts(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence):
        for number, each in enumerate(value):
            yield from _texts(each, f"{path}[{number}]")


def _host_of(text: str) -> str:
    """Return the host that a URI would be asked for, in small letters; empty for other texts, and for a bucket's URI.

    A bucket's URI may name an endpoint of its own.
    """
    if "://" not in text:
        return ""
    try:
        split = urlsplit(text)
        if split.scheme.lower() in _BUCKETS:
            endpoint = (parse_qs(split.query).get("endpoint_override") or [""])[0]
            return urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").hostname or ""
        return split.hostname or ""
    except ValueError:
        return text


def _is_below(place: str, root: str) -> bool:
    return place.rstrip("/") == root.rstrip("/") or place.startswith(root.rstrip("/") + "/")
