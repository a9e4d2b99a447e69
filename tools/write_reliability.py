"""Write the table in docs/reliability.md from the newest soak record that is kept.

    python -m tools.write_reliability            write the table
    python -m tools.write_reliability --check    exit 1 when it is out of date

`make soak` writes the record, bench/records/<date>-soak/soak.json. This tool writes the part of the
page between the two markers. The rest is written by hand.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.stories.admit.expiry import no_attempt_begins_after_its_job_expired
from tests.stories.admit.key_order import (
    jobs_of_an_ordered_key_run_in_the_order_of_enqueueing,
    jobs_of_an_ordered_key_run_one_after_the_other,
)
from tests.stories.admit.rates import no_window_has_more_starts_than_its_rate_allows
from tests.stories.admit.slots import (
    no_job_with_a_limit_begins_unadmitted,
    no_key_has_more_at_work_than_allowed,
    no_limit_has_more_at_work_than_allowed,
)
from tests.stories.admit.unique_keys import (
    a_unique_key_has_one_live_job,
    an_enqueue_that_met_its_job_adds_none,
)
from tests.stories.checker import every_job_ends
from tests.stories.soak.record import FaultRecord, SoakRecord, newest
from tools.generated_file import ROOT, replace_between, write_or_check

PAGE = ROOT / "docs/reliability.md"
COLUMNS = (
    *("fault", "times", "jobs under way", "lost", "settled twice"),
    *("resumed after", "caught up after", "alone"),
)
ADMISSION = {
    "More at work than a rule allows": (
        no_key_has_more_at_work_than_allowed,
        no_limit_has_more_at_work_than_allowed,
        no_job_with_a_limit_begins_unadmitted,
    ),
    "Out of order": (
        jobs_of_an_ordered_key_run_one_after_the_other,
        jobs_of_an_ordered_key_run_in_the_order_of_enqueueing,
    ),
    "More starts than a rate allows": (no_window_has_more_starts_than_its_rate_allows,),
    "Live twice under one unique key": (
        a_unique_key_has_one_live_job,
        an_enqueue_that_met_its_job_adds_none,
    ),
    "Begun after `expires_at`": (no_attempt_begins_after_its_job_expired,),
    "Waiting for ever": (every_job_ends,),
}
BEGIN, END = "<!-- soak: begin -->\n", "<!-- soak: end -->\n"


def page(text: str, record: SoakRecord, path: Path) -> str:
    """Return the page with the table of this record between its markers."""
    if BEGIN not in text or END not in text:
        sys.exit(f"{PAGE.name} has no markers: add {BEGIN.strip()} and {END.strip()}")
    return replace_between(text, BEGIN, END, table(record, path))


def table(record: SoakRecord, path: Path) -> str:
    where = path.relative_to(ROOT).as_posix()
    other = len(record.findings) - record.lost - record.settled_twice
    lines = [
        f"From [{where}](../{where}): {record.minutes:g} minutes, {record.workers} workers,",
        f"PostgreSQL {record.postgres} with a synchronous standby,",
        f"{record.machine['cores']} cores, `HOWDAH_SEED={record.seed}`.",
        "",
        f"**{sum(fault.injected for fault in record.faults):,} faults, {record.jobs:,} jobs,",
        f"{record.attempts:,} attempts, {record.given_up:,} of them taken from workers that were",
        f"given up. Lost: {record.lost}. Settled twice: {record.settled_twice}.",
        f"Other broken promises: {other}.**",
        f"{record.unknown:,} enqueues got no answer; each became one job or none.",
        "",
        *admission(record),
        f"| {' | '.join(COLUMNS)} |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *(row(fault, record) for fault in record.faults),
        "",
    ]
    lines += [
        f"Left out on that machine: {what}, {why}.\n" for what, why in record.left_out.items()
    ]
    return "\n".join(lines) + "\n"


def admission(record: SoakRecord) -> list[str]:
    """Return what the record shows of keys and limits; nothing, if it is older than they are."""
    counts = record.admission
    if counts is None:
        return []
    broken = Counter(finding.partition(":")[0] for finding in record.findings)
    results = [
        f"{what}: {sum(broken[promise.__name__] for promise in promises)}."
        for what, promises in ADMISSION.items()
    ]
    return [
        f"{counts.limited:,} jobs had a key or a limit, {counts.ordered:,} of them an ordered key,",
        f"and {counts.rated:,} attempts started under a rate.",
        f"The rules were changed {counts.rule_versions:,} times meanwhile.",
        f"{counts.existed:,} enqueues met the job that has their unique key,",
        f"and {counts.expired:,} jobs expired before they began.",
        f"**{' '.join(results)}**",
        "",
    ]


def row(fault: FaultRecord, record: SoakRecord) -> str:
    cells = (
        fault.name,
        str(fault.injected),
        f"{fault.under_way} ({fault.under_way_most})",
        str(record.lost),
        str(record.settled_twice),
        f"{fault.resumed:.2f} s ({fault.resumed_worst:.2f})",
        f"{fault.caught_up:.1f} s ({fault.caught_up_worst:.1f})",
        f"`make soak FAULT={fault.key} MINUTES=1`",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    text = page(PAGE.read_text(encoding="utf-8"), *newest())
    return write_or_check({PAGE: text}, sys.argv[1:], "make docs")


if __name__ == "__main__":
    sys.exit(main())
