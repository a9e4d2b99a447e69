"""Commands: all commands in one group; an error becomes a message and an exit code.

An error that the user can fix is one line on stderr, without a traceback. A traceback means a bug
in howdah or in the user's own module.
"""

from __future__ import annotations

import sys
from traceback import format_exception
from types import TracebackType
from typing import Any

import click

from howdah.cli import output
from howdah.cli.bench import bench
from howdah.cli.cancel import cancel
from howdah.cli.completion import completion
from howdah.cli.demo import demo
from howdah.cli.dev import dev
from howdah.cli.doctor import doctor
from howdah.cli.enqueue import enqueue
from howdah.cli.exit_codes import ExitCode, exit_code_for
from howdah.cli.hide_password import hide_passwords
from howdah.cli.install import install
from howdah.cli.jobs import jobs
from howdah.cli.keys import keys
from howdah.cli.limits import limits
from howdah.cli.metrics import metrics
from howdah.cli.options import DSN_HELP
from howdah.cli.pause import pause
from howdah.cli.pg import pg
from howdah.cli.recover import recover
from howdah.cli.requeue import requeue
from howdah.cli.resume import resume
from howdah.cli.schedules import schedules
from howdah.cli.show import show
from howdah.cli.signal import signal
from howdah.cli.sql import sql
from howdah.cli.stats import stats
from howdah.cli.top import top
from howdah.cli.watch import watch
from howdah.cli.web import web
from howdah.cli.why import why
from howdah.cli.worker import worker
from howdah.errors import HowdahError
from howdah.text.printable import clean
from howdah.version import VERSION

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Start": (demo, dev),
    "Work": (worker, enqueue),
    "Inspect": (web, jobs, show, watch, why, stats, keys, top, doctor, metrics),
    "Change": (cancel, requeue, signal, pause, resume, limits, schedules, recover),
    "Database": (install, sql, pg, bench),
    "Shell": (completion,),
}


class Commands(click.Group):
    """The group of all commands: lists them by section, turns errors into exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HowdahError as error:
            output.error(str(error))
            ctx.exit(exit_code_for(error))
        except KeyboardInterrupt:
            ctx.exit(ExitCode.INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{c.name:<{width}}", c.get_short_help_str(100)) for c in commands]
                )


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes:
  0    success
  1    the job failed or was cancelled, or a part of the request was not done (doctor: warnings)
  2    wrong usage, or a job that cannot be enqueued (doctor: something is critical)
  3    the job does not exist (pg status: not running)
  4    the database is unreachable or read-only, or the role lacks a privilege
  5    the schema is missing, older or newer: see `howdah install`
  130  interrupted

\b
See it work:          howdah demo
Shell completion:     howdah completion --help""",
)
@click.version_option(VERSION, prog_name="howdah", message="%(prog)s %(version)s")
@click.option("--dsn", metavar="DSN", help=DSN_HELP)
@click.pass_context
def howdah(ctx: click.Context, dsn: str | None) -> None:
    """A job queue in PostgreSQL, with priorities, retries and live progress.

    Without a DSN, every command uses an embedded PostgreSQL, which it starts if necessary.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _section in SECTIONS.values():
    for _command in _section:
        howdah.add_command(_command)


def _show_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of a bug; its text may come from the database, so it is cleaned."""
    click.echo(clean("".join(format_exception(kind, error, trace))), err=True, nl=False)


def main() -> None:
    """Run the program `howdah`."""
    sys.excepthook = _show_unexpected
    hide_passwords()
    try:
        howdah(prog_name="howdah")
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
