"""Quick, from the command line: compare the speed of the working tree with that of a commit.

    python -m bench.quick                      with the last commit, if src has changes since;
                                               else with the one before it
    python -m bench.quick --against COMMIT     with this one

One run on one server, under three minutes. The exit code is 0 when nothing is slower by more than
15 %, 1 when something is, and 2 when something could not be compared.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.install import GROUND, ROOT
from bench.quick.commits import MEASURED, NoCommit, choose, take_out
from bench.quick.judge import INCOMPLETE, verdict
from bench.quick.rounds import PLANS, Match, compare
from bench.quick.sides import Side, frozen, same_code
from bench.server import private_postgres


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--against", metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    said = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        commit = choose(said.against or None, ROOT)
        theirs = take_out(commit, ROOT, GROUND / "quick")
    except NoCommit as problem:
        tell(f"Cannot compare: {problem}.")
        return INCOMPLETE
    ours = frozen(ROOT / MEASURED, GROUND / "quick")
    tell(f"The working tree against {commit.short}, {commit.why}: {commit.subject}")
    if same_code(ours, theirs):
        tell(f"{MEASURED} is the same in both: what differs is the noise of this machine.")
    with private_postgres(said.server) as postgres:
        match = Match(
            Side("the working tree", ours), Side(f"commit {commit.short}", theirs), postgres, tell
        )
        found = compare(match, PLANS)
    code, sentence = verdict(found)
    print(f"\n{'':20} {'working tree':>16} {commit.short:>16}   ratio of the pairs, 1 is as fast")
    for compared in found:
        print(compared.line)
    print(f"\n{sentence} It took {time.monotonic() - began:.0f} s.")
    return code


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
