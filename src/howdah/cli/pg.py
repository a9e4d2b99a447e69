"""howdah pg: look after the private server that is there when no DSN is given.

Comes after  embedded/, which does the work; every other command joins that server by itself

For the curious, and for those who want it to stay up between two commands. None of this
touches a server named by HOWDAH_DSN or DATABASE_URL.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from types import FrameType

import click

from howdah import embedded
from howdah.cli import ground

STOPPED = 3  # as `pg_ctl status` and `systemctl status` say it


@click.group()
def pg() -> None:
    """Look after the private PostgreSQL server.

    Without a DSN, howdah runs a PostgreSQL of its own: started when needed, shared by all
    your processes, stopped when the last one has gone. Its data stays in HOWDAH_HOME, or in
    your data directory. You need none of these commands to use it.
    """


@pg.command()
def start() -> None:
    """Start the server and keep it up until `howdah pg stop`.

    Saves the other commands the time to start it. After a reboot it is not started again.
    """
    with embedded.join(keep=True) as server:
        click.echo(server.dsn)


@pg.command()
def stop() -> None:
    """Stop the server now, and no longer keep it up.

    Processes that use it lose their connections. Nothing that was committed is lost.
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
    """Tell whether the server runs, where its data is, and who uses it.

    Exit code 0: it runs. Exit code 3: it does not.
    """
    found = embedded.status()
    if as_json:
        ground.show_json_line(_fields(found))
    else:
        for line in _lines(found):
            ground.show(line)
    sys.exit(0 if found.running else STOPPED)


@pg.command()
def dsn() -> None:
    """Print the server's DSN, for psql or any driver.

    Starts nothing: a DSN that is passed on should not depend on this command's lifetime.
    """
    found = embedded.status()
    click.echo(found.dsn)
    if not found.running:
        click.echo("The server is not running; `howdah pg start` keeps it up.", err=True)


@pg.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the server, which is started if need be.

    Arguments after `--` go to psql, and its exit code is passed on:

        howdah pg psql -- -c 'select 1'
    """
    program = embedded.find_psql()
    if program is None:
        raise click.ClickException(
            "no psql was found: install PostgreSQL's client programs, or use the DSN of"
            " `howdah pg dsn` with a client of your own"
        )
    with embedded.join() as server:
        signal.signal(signal.SIGINT, _leave_it_to_psql)
        done = subprocess.run([program, "-d", server.dsn, *arguments])  # noqa: S603  asked for
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _leave_it_to_psql(number: int, frame: FrameType | None) -> None:
    """Outlive Ctrl-C, which psql handles by itself. A handler, as exec would pass on SIG_IGN."""


def _fields(found: embedded.Status) -> dict[str, object]:
    return {
        "running": found.running,
        "kept": found.kept,
        "pid": found.pid,
        "version": found.version,
        "users": list(found.users),
        "dsn": found.dsn,
        "home": str(found.home),
        "data": str(found.data),
        "log": str(found.log),
    }


def _lines(found: embedded.Status) -> list[str]:
    if not found.running:
        state = "stopped"
    elif found.kept:
        state = "running, kept up until `howdah pg stop`"
    else:
        state = "running, until its last user has gone"
    lines = [f"server    {state}"]
    if found.pid is not None:
        lines.append(f"pid       {found.pid}")
    lines.append(f"version   {found.version or 'no data yet'}")
    if found.running:
        lines.append(f"users     {_processes(len(found.users))}")
    return [*lines, f"data      {found.data}", f"log       {found.log}", f"dsn       {found.dsn}"]


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
