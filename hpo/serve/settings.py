"""`ServeSettings`: what the server is started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from hpo.serve.places import NO_PLACES, Places
from trainers.errors import ConfigurationError
from trainers.home import home


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What the server is started with; times in seconds.

    Args:
        store: database URL of the record; None is the default one.
        tokens: the file of tokens; None is `serve/tokens.json` in `home()`.
        host: the address to listen on.
        port: likewise; 0 is a free one.
        names: host names under which browsers and programs call the server, beside loopback and plain addresses.
        allow_code: whether job files may name Python code, which the jobs' processes would import.
        data_dir: where named datasets lie.
        places: folders that jobs of clients may write to, and hosts that they may ask or send to.
        aws_keys: the file of keys for SageMaker's protocol; None leaves that out.
        aws_tables: the file of images and instance types of one's own.
        most_bytes: of a request's body.
        header_seconds: within which a request's head has to be there.
        body_seconds: within which its body has to be there.
        send_seconds: within which a client has to take what it is sent.
        database_seconds: for which a request waits for the database.
        end_seconds: within which the server ends once it is asked to.
        streams: clients that may follow events at once.
        streams_of_one: likewise, of one token.
        connections: that are open at once; above it, one that has waited longest for a request gives way to a new one.
        connections_of_one: likewise, of one address that is not this machine's own, as that of a proxy is.
        rate: requests a second of one token, or of one address without one; four times as many may come at once.
    """

    store: str | None = None
    tokens: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8900
    names: tuple[str, ...] = ()
    allow_code: bool = False
    data_dir: str | None = None
    places: Places = NO_PLACES
    aws_keys: Path | None = None
    aws_tables: Path | None = None
    most_bytes: int = 4 * 1024 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    send_seconds: float = 20.0
    database_seconds: float = 15.0
    end_seconds: float = 10.0
    streams: int = 2000
    streams_of_one: int = 100
    connections: int = 2500
    connections_of_one: int = 200
    rate: float = 200.0
    folder: Path = field(default_factory=lambda: home() / "serve")

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise ConfigurationError(f"port is {self.port}; give a number from 0, which is a free port, to 65535")
        for name in ("most_bytes", "header_seconds", "body_seconds", "send_seconds", "database_seconds", "rate"):
            if not (value := getattr(self, name)) > 0:
                raise ConfigurationError(f"{name} is {value}; give a number above 0")

    @property
    def on_loopback(self) -> bool:
        """Whether no other machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def tokens_file(self) -> Path:
        """The file of tokens."""
        return self.tokens or self.folder / "tokens.json"
