"""Report: write a record as Markdown. It is printed at the end of a run and kept as summary.md."""

from __future__ import annotations

from bench.machine import describe
from bench.record import in_order
from bench.report import TRIAL, problem_list, settings, table
from bench.stress.record import PhaseResult, StressRecord, StressRun
from bench.stress.stresses import STRESSES

CHAOS = [
    "",
    "kills",
    "ended by itself",
    "enqueued",
    "not enqueued",
    "ran twice",
    "never began",
    "not done at the end",
    "lost",
    "longest pause, s",
    "all done after, s",
]


def report(record: StressRecord) -> str:
    parts = [
        f"# Peers under stress, {record.date}",
        *([TRIAL] * record.trial),
        "\n".join(f"- {line}" for line in _environment(record)),
        *(part for stress in STRESSES for part in _stress(record, stress)),
        *problem_list(record.problems()),
        "## How the jobs of a killed worker come back",
        "\n".join(
            f"- **{record.peers[peer].title}**: {record.recovery[peer]}."
            for peer in in_order(record.peers)
        ),
        "## Settings",
        settings(record.peers),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


HOW = """\
A producer and a worker of one process each go on through all phases, without a break. At a rate,
enqueue calls are made at their times, whether or not those before them were answered. At saturation
the producer enqueues in bulk, one call after another, and keeps the line at its length. Payloads
have 100 bytes, and handlers do nothing. A pickup is the time from before the enqueue call to the
first line of the handler, so most of the enqueue call is a part of it. `stress` is its last third,
and with chaos all of it; `recovery` is what follows its first 5 seconds. The job tables are those
tables of the peer's database whose rows are updated or deleted while jobs run; dead rows and sizes
are the most in a phase. The others are a history or a log. Waits are active sessions of the server
on average, by what they waited for. With chaos the worker and all its children are killed with
SIGKILL, and another one is started at once. A job ran twice if its handler began more than once. It
is lost if its enqueue call was answered, its handler never began, and the store has nothing left to
do."""


def _environment(record: StressRecord) -> list[str]:
    seconds = record.seconds
    return [
        *describe(record.command, record.commit, record.machine, record.postgres),
        "phases: {clean:g} s clean, {stress:g} s stress, {recovery:g} s recovery; with chaos a kill"
        " every {kill_every:g} s, one restart of the server, and up to {done_within:g} s more until"
        " all jobs are done".format(**seconds),
        f"jobs that come at a rate: {record.per_call} in an enqueue call",
    ]


def _stress(record: StressRecord, stress: str) -> list[str]:
    runs = [
        run
        for peer in in_order(record.peers)
        if (run := record.run(peer, stress)) is not None and run.problem is None
    ]
    if not runs:
        return []
    titles = {run.peer: record.peers[run.peer].title for run in runs}
    chaos = [_chaos_row(titles[run.peer], run) for run in runs if run.chaos is not None]
    notes = [f"- {titles[run.peer]}: {note}" for run in runs for note in run.notes]
    title = STRESSES[stress].title
    return [
        f"## {title[0].upper()}{title[1:]}",
        _phases(runs, titles),
        *([table(CHAOS, chaos)] if chaos else []),
        *(["\n".join(notes)] if notes else []),
        "### Job tables with their indexes, in MB",
        _tables(runs, titles),
    ]


def _phases(runs: list[StressRun], titles: dict[str, str]) -> str:
    head = ["", "phase", "jobs/s", "p50, ms", "p99, ms", "p50 to clean", "p99 to clean"]
    head += ["enqueue p50, ms", "dead rows", "tables, MB", "indexes, MB", "active sessions"]
    rows = [
        [titles[run.peer] if nth == 0 else "", *_phase_row(phase, run.phases[0])]
        for run in runs
        for nth, phase in enumerate(run.phases)
    ]
    return table(head, rows)


def _phase_row(phase: PhaseResult, clean: PhaseResult) -> list[str]:
    waits = ", ".join(f"{name} {sessions:.2f}" for name, sessions in phase.waits.items())
    return [
        phase.phase,
        f"{phase.rate:,.0f}",
        _ms(phase.p50_ms),
        _ms(phase.p99_ms),
        _growth(phase.p50_ms, clean.p50_ms),
        _growth(phase.p99_ms, clean.p99_ms),
        _ms(phase.enqueue_p50_ms),
        "-" if phase.dead_rows is None else f"{phase.dead_rows:,}",
        *("-" if size is None else f"{size:,.1f}" for size in (phase.table_mb, phase.index_mb)),
        waits or "-",
    ]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def _growth(value: float | None, clean: float | None) -> str:
    return f"{value / clean:,.2f}x" if value is not None and clean else "-"


def _chaos_row(title: str, run: StressRun) -> list[str]:
    chaos = run.chaos
    assert chaos is not None
    return [
        title,
        *(
            f"{count:,}"
            for count in (
                chaos.kills,
                chaos.ended_by_itself,
                chaos.answered,
                chaos.failed,
                chaos.ran_twice,
                chaos.never_began,
                chaos.left,
                chaos.lost,
            )
        ),
        f"{chaos.longest_pause:.2f}",
        "not all" if chaos.done_after is None else f"{chaos.done_after:.1f}",
    ]


def _tables(runs: list[StressRun], titles: dict[str, str]) -> str:
    head = ["", "table", "dead rows at most", "clean", "at most", "at the end"]
    rows = [
        [
            titles[run.peer] if nth == 0 else "",
            found.name,
            f"{found.dead_rows:,}",
            f"{found.mb_clean:,.1f}",
            f"{found.mb_most:,.1f}",
            f"{found.mb_last:,.1f}",
        ]
        for run in runs
        for nth, found in enumerate(run.tables)
    ]
    rows += [
        [titles[run.peer], "history and logs", "-", "-", "-", f"{run.history_mb:,.1f}"]
        for run in runs
        if run.history_mb
    ]
    return table(head, rows)
