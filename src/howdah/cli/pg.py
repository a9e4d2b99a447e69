"""howdah pg: commands for the embedded PostgreSQL server.

Every other command joins that server by itself. These show it, or keep it up between two
commands. They never touch a server that HOWDAH_DSN or DATABASE_URL names.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from types import FrameType

import click

from howdah import embedded
from howdah.cli import output

STOPPED = 3  # the exit code of `pg_ctl status` and `systemctl status` too


@click.group()
def pg() -> None:
    """Manage the embedded PostgreSQL server.

    Without a DSN, howdah runs its own PostgreSQL server. It is started when a process needs it,
    shared by all your processes, and stopped when the last one has ended. Its data stays in
    HOWDAH_HOME, or in your data directory. You do not need these commands to use it.
    """


@pg.command()
def start() -> None:
    """Start the server and keep it up until `howdah pg stop`.

    Then other commands do not have to start it. It is not started again after a reboot.
    """
    with embedded.join(keep=True) as server:
        click.echo(server.dsn)


@pg.command()
def stop() -> None:
    """Stop the server now.

    Processes that use it lose their connections. No committed data is lost.
    """
    users = len(embedded.status().users)
    if not embedded.stop():
        click.echo("not running")
    elif users:
        click.echo(f"stopped, while {_processes(users)} used it")
    else:
        click.echo("stopped")


@pg.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Show whether the server runs, where its data is, and how many processes use it.

    Exit code 0 if it runs, 3 if not.
    """
    server = embedded.status()
    if as_json:
        output.show_json_line(_fields(server))
    else:
        for line in _lines(server):
            output.show(line)
    sys.exit(0 if server.running else STOPPED)


@pg.command()
def dsn() -> None:
    """Print the server's DSN, for psql or any driver.

    Does not start the server: it would stop again when this command ends.
    """
    server = embedded.status()
    click.echo(server.dsn)
    if not server.running:
        click.echo(
            "The server is not running: `howdah pg start` starts it and keeps it up.", err=True
        )


@pg.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the server, and start the server if necessary.

    Arguments after `--` go to psql. The exit code is that of psql:

        howdah pg psql -- -c 'select 1'
    """
    program = embedded.find_psql()
    if program is None:
        raise click.ClickException(
            "psql was not found: install the client programs of PostgreSQL, or use another client"
            " with the DSN of `howdah pg dsn`"
        )
    with embedded.join() as server:
        signal.signal(signal.SIGINT, _ignore_interrupt)
        done = subprocess.run([program, "-d", server.dsn, *arguments])  # noqa: S603  the user's call
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _ignore_interrupt(number: int, frame: FrameType | None) -> None:
    """Ignore Ctrl-C, which psql handles. Not SIG_IGN: psql would inherit that."""


def _fields(server: embedded.Status) -> dict[str, object]:
    return {
        "running": server.running,
        "kept": server.kept,
        "pid": server.pid,
        "version": server.version,
        "users": list(server.users),
        "dsn": server.dsn,
        "home": str(server.home),
        "data": str(server.data),
        "log": str(server.log),
    }


def _lines(server: embedded.Status) -> list[str]:
    if not server.running:
        state = "stopped"
    elif server.kept:
        state = "running, kept up until `howdah pg stop`"
    else:
        state = "running, until the last process that uses it has ended"
    lines = [f"server    {state}"]
    if server.pid is not None:
        lines.append(f"pid       {server.pid}")
    lines.append(f"version   {server.version or 'no data yet'}")
    if server.running:
        lines.append(f"users     {_processes(len(server.users))}")
    return [
        *lines,
        f"data      {server.data}",
        f"log       {server.log}",
        f"dsn       {server.dsn}",
    ]


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
