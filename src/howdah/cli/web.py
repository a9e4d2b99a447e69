"""howdah web: serve the dashboard."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.log import log_json_option, log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, port_option
from howdah.errors import BadInput

if TYPE_CHECKING:
    from howdah.web import Access, OneTimeLink

PASSWORD = "HOWDAH_WEB_PASSWORD"  # noqa: S105 - the name of a variable
MISSING_EXTRA = "the dashboard needs more packages: pip install 'howdah[web]'"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@port_option
@click.option(
    "--user", default="admin", show_default=True, help="The user name that goes with the password."
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"A file with the password for logging in. [or: {PASSWORD}]",
)
@click.option(
    "--trust-header",
    metavar="NAME",
    help="A header in which a proxy names the user, such as X-Forwarded-User.",
)
@click.option(
    "--trust-proxy",
    metavar="ADDRESS",
    multiple=True,
    help="The address or network of a proxy whose --trust-header and X-Forwarded-For are trusted; "
    "can be repeated.",
)
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="A host name that browsers may use for this server, besides localhost; can be repeated.",
)
@click.option("--read-only", is_flag=True, help="Disable every action that changes something.")
@click.option(
    "--redact",
    metavar="KEY",
    multiple=True,
    help="Never show the values of this payload key; can be repeated.",
)
@click.option(
    "--prefix", default="", metavar="PATH", help="The path at which a proxy serves the dashboard."
)
@log_level_option
@log_json_option
@dsn_option
def web(
    host: str,
    port: int,
    user: str,
    password_file: Path | None,
    trust_header: str | None,
    trust_proxy: tuple[str, ...],
    allow_host: tuple[str, ...],
    read_only: bool,
    redact: tuple[str, ...],
    prefix: str,
    log_level: str,
    log_json: bool,
    dsn: str | None,
) -> None:
    """Serve the dashboard.

    On a loopback address it prints a link that works once. On any other address it needs a
    password, or a proxy that authenticates. Programs use the token in HOWDAH_WEB_TOKEN.

    Every action is logged with the user who did it. SIGTERM or Ctrl-C stops the server.
    """
    log_to_stderr(log_level, log_json)
    serve = load_serve()
    serve(
        Queue(dsn),
        access(host, user, _password(password_file), trust_header, trust_proxy),
        host=host,
        port=port,
        hosts=_hosts(host, allow_host),
        read_only=read_only,
        redact=redact,
        prefix=checked_prefix(prefix),
        proxies=trust_proxy,
        say=output.note,
    )


def load_serve() -> Callable[..., None]:
    """Import the function that serves the dashboard; raises BadInput if the extra is missing."""
    try:
        from howdah.web.serve import serve
    except ModuleNotFoundError:
        raise BadInput(MISSING_EXTRA) from None
    return serve


def access(
    host: str,
    user: str,
    password: str | None,
    header: str | None,
    proxies: tuple[str, ...],
) -> Access | OneTimeLink:
    """Choose how users authenticate; other machines are never let in without a credential."""
    from howdah.web import OneTimeLink, Password, TrustedHeader

    if header is not None and password is not None:
        raise BadInput("a password and --trust-header exclude each other: use only one of them")
    if header is not None:
        return TrustedHeader(header, proxies)
    if password is not None:
        return Password(password, user)
    if not is_loopback(host):
        raise BadInput(
            f"other machines can reach {host}: set a password with {PASSWORD} or --password-file, "
            "or use --trust-header and --trust-proxy"
        )
    return OneTimeLink()


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_prefix(path: str) -> str:
    """Return the prefix with a leading and without a trailing slash; no prefix is empty."""
    prefix = path.strip("/")
    if not re.fullmatch(r"[\w.~/-]*", prefix, re.ASCII):
        raise BadInput(f"--prefix {path!r} is not a path: write such as /queue")
    return f"/{prefix}" if prefix else ""


def _hosts(host: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the host names that browsers may use: this prevents DNS rebinding."""
    if is_loopback(host):
        return ("localhost", "127.0.0.1", "[::1]", host, *allowed)
    return allowed or ("*",)


def _password(file: Path | None) -> str | None:
    return file.read_text().strip() if file is not None else os.environ.get(PASSWORD)
