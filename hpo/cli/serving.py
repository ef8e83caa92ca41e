"""Commands that serve the record over HTTP, and make tokens for that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from hpo.cli.options import AllowCode, DataDir, StoreUrl

TokensFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--tokens", metavar="FILE", help="The file of tokens; else serve/tokens.json in WARMBAND_HOME."),
]


def serve(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 is a free one.")] = 8900,
    store: StoreUrl = None,
    tokens: TokensFile = None,
    name: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--name", metavar="HOST", help="A host name that leads here; may be repeated."),
    ] = None,
    aws_keys: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Access keys, for SageMaker's own clients; without, there is no door."),
    ] = None,
    aws_tables: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Images and instance types of your own, for SageMaker's clients."),
    ] = None,
    root: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="A folder or URI below which jobs may write, beside WARMBAND_HOME/jobs; may be repeated. While no URI "
            "is given, they may write to any bucket that the server's credentials open.",
        ),
    ] = None,
    allow_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--allow-host",
            metavar="HOST[=VARIABLE,...]",
            help="A host that jobs may ask or send to (webhooks, mail, data, storage), and the variables whose secrets "
            "it may get; may be repeated.",
        ),
    ] = None,
    data_dir: DataDir = None,
    allow_code: AllowCode = False,
) -> None:
    """Serve the record's jobs: a REST API, events and a console.

    The first start makes a token, shows it once, and shows a link that logs
    a browser in once, within 10 minutes. Jobs that are started here run in
    processes of their own, and go on when the server ends. Other machines
    reach it with --host, and a reverse proxy for TLS.
    """
    from trainers.extras import check_extra

    check_extra("hpo serve", "serve")
    from hpo.serve import Places, ServeSettings, run

    settings = ServeSettings(
        host=host,
        port=port,
        store=store,
        tokens=tokens,
        names=tuple(name or ()),
        places=Places.of(root or (), allow_host or ()),
        aws_keys=aws_keys,
        aws_tables=aws_tables,
        data_dir=data_dir,
        allow_code=allow_code,
    )
    run(settings, typer.echo)


def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is; acts in the record bear it.")],
    rights: Annotated[Literal["look", "act"], typer.Option(help="Whether it may act, or look alone.")] = "look",
    remove: Annotated[bool, typer.Option("--remove", help="Take the token away, and end its sessions.")] = False,
    tokens: TokensFile = None,
) -> None:
    """Make a token for hpo serve, and show it once."""
    from hpo.serve import ServeSettings, Tokens

    file = Tokens(ServeSettings(tokens=tokens).tokens_file)
    if remove:
        file.remove(name)
        typer.echo(f"Removed {name} from {file.file}")
    else:
        typer.echo(file.add(name, rights))


def key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is; acts in the record bear it.")],
    rights: Annotated[Literal["look", "act"], typer.Option(help="Whether it may act, or look alone.")] = "act",
    remove: Annotated[bool, typer.Option("--remove", help="Take the key away.")] = False,
    aws_keys: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="The file of access keys; else serve/aws-keys.json in WARMBAND_HOME."),
    ] = None,
) -> None:
    """Make an access key for SageMaker's own clients, and show it once.

    What is printed are the variables that a client needs. The server reads
    the file with hpo serve --aws-keys FILE.
    """
    from hpo.serve import Keys, ServeSettings

    keys = Keys(aws_keys or ServeSettings().folder / "aws-keys.json")
    if remove:
        keys.remove(name)
        typer.echo(f"Removed {name} from {keys.file}")
        return
    made = keys.add(name, rights)
    typer.echo(f"export AWS_ACCESS_KEY_ID={made.id}\nexport AWS_SECRET_ACCESS_KEY={made.secret}")
    typer.echo("export AWS_DEFAULT_REGION=us-east-1")
    for service in ("SAGEMAKER", "CLOUDWATCH", "CLOUDWATCH_LOGS"):
        typer.echo(f"export AWS_ENDPOINT_URL_{service}=http://127.0.0.1:8900")
    typer.echo(f"# The address is that of: hpo serve --aws-keys {keys.file}")
    typer.echo("# For data in MinIO or Ceph, too: export AWS_ENDPOINT_URL_S3=http://HOST:9000")
