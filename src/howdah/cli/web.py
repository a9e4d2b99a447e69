"""howdah web: the dashboard, on this machine or behind a password."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.log import log_json_option, log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, port_option
from howdah.errors import BadInput

if TYPE_CHECKING:
    from howdah.web import Access, OneTimeLink

PASSWORD = "HOWDAH_WEB_PASSWORD"  # noqa: S105 - the name of a variable
MISSING = "the dashboard needs its extra: pip install 'howdah[web]'"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@port_option
@click.option("--user", default="admin", show_default=True, help="The name beside the password.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Let in whoever knows the password in this file. [or: {PASSWORD}]",
)
@click.option(
    "--trust-header",
    metavar="NAME",
    help="Let in whom a proxy names in this header, such as X-Forwarded-User.",
)
@click.option(
    "--trust-proxy",
    metavar="ADDRESS",
    multiple=True,
    help="A proxy's address or network: its --trust-header and X-Forwarded-For count.",
)
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="A name that browsers may call this server by; beside localhost when bound to it.",
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option(
    "--redact", metavar="KEY", multiple=True, help="Never show values under this payload key."
)
@click.option("--prefix", default="", metavar="PATH", help="The path that a proxy serves it below.")
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

    On this machine it prints a link that opens it once. Anywhere else it needs to know who comes:
    a password, or a proxy that has asked already. HOWDAH_WEB_TOKEN lets programs in.

    Every action leaves a line in the log, with who did it. SIGTERM or Ctrl-C ends it.
    """
    log_to_stderr(log_level, log_json)
    serve = loaded_serve()
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
        say=ground.remark,
    )


def loaded_serve() -> Callable[..., None]:
    """Return what serves the dashboard; say in one line what is missing."""
    try:
        from howdah.web.serve import serve
    except ModuleNotFoundError:
        raise BadInput(MISSING) from None
    return serve


def access(
    host: str,
    user: str,
    password: str | None,
    header: str | None,
    proxies: tuple[str, ...],
) -> Access | OneTimeLink:
    """Say who may enter; refuse to let in anybody from anywhere."""
    from howdah.web import OneTimeLink, Password, TrustedHeader

    if header is not None and password is not None:
        raise BadInput("give a password or a trusted header, not both")
    if header is not None:
        return TrustedHeader(header, proxies)
    if password is not None:
        return Password(password, user)
    if not is_loopback(host):
        raise BadInput(
            f"{host} can be reached from other machines: say who may enter with {PASSWORD} or "
            "--password-file, or with --trust-header and --trust-proxy"
        )
    return OneTimeLink()


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_prefix(said: str) -> str:
    """Return a prefix with a slash before it and none behind it; none is empty."""
    prefix = said.strip("/")
    if not re.fullmatch(r"[\w.~/-]*", prefix, re.ASCII):
        raise BadInput(f"{said!r} is not a path that a link can begin with: write /queue")
    return f"/{prefix}" if prefix else ""


def _hosts(host: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Say by which names browsers may call us: a page elsewhere may call this machine anything."""
    if is_loopback(host):
        return ("localhost", "127.0.0.1", "[::1]", host, *allowed)
    return allowed or ("*",)


def _password(file: Path | None) -> str | None:
    return file.read_text().strip() if file is not None else os.environ.get(PASSWORD)
