"""Table: schedules as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.cli import formatting, output
from howdah.observe import Schedule
from howdah.text.printable import one_line
from howdah.text.wording import fires, instant


def show_schedules(found: Sequence[Schedule]) -> None:
    table = output.table(
        *("SCHEDULE", "TYPE", "FIRES", "STATE", "NEXT", "LAST", "OUTCOME", "MADE BY"),
    )
    for each in found:
        table.add_row(
            one_line(each.name),
            one_line(each.job_type),
            one_line(fires(each.cron, each.every, each.tz)),
            "late" if each.late and each.state == "active" else each.state,
            _next(each),
            "" if each.last_firing is None else formatting.ago(each.last_firing),
            each.last_outcome,
            "code" if each.declared else one_line(each.changed_by),
        )
    output.show(table)
    for each in found:
        if each.problem is not None:
            output.warning(f"{one_line(each.name)}: {one_line(each.problem)}")


def _next(of: Schedule) -> str:
    if of.state in ("paused", "orphaned", "stopped"):
        return ""
    return "when a worker looks" if of.next_firing is None else instant(of.next_firing)
