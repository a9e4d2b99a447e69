"""Quick, from the command line: compare the speed of the working tree with that of a commit.

    python -m bench.quick                      the last commit, if src has changes since;
                                               otherwise the one before it
    python -m bench.quick --against COMMIT     this commit

One run on one server, in less than three minutes. The exit code is 0 when nothing is slower by more
than 15 %, 1 when something is, and 2 when something could not be compared.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.install import ROOT, WORK_FOLDER
from bench.progress import show_progress
from bench.quick.commits import MEASURED, NoCommit, choose, extract
from bench.quick.rounds import PLANS, PairRunner, compare
from bench.quick.variants import Variant, copy_source, same_code
from bench.quick.verdict import INCOMPLETE, verdict
from bench.server import private_postgres


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--against", metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        commit = choose(options.against or None, ROOT)
        commit_source = extract(commit, ROOT, WORK_FOLDER / "quick")
    except NoCommit as problem:
        show_progress(f"Cannot compare: {problem}.")
        return INCOMPLETE
    tree_source = copy_source(ROOT / MEASURED, WORK_FOLDER / "quick")
    show_progress(f"The working tree against {commit.short}, {commit.why}: {commit.subject}")
    if same_code(tree_source, commit_source):
        show_progress(f"{MEASURED} is the same in both: a difference is noise of this machine.")
    with private_postgres(options.server) as postgres:
        runner = PairRunner(
            Variant("the working tree", tree_source),
            Variant(f"commit {commit.short}", commit_source),
            postgres,
            show_progress,
        )
        comparisons = compare(runner, PLANS)
    code, sentence = verdict(comparisons)
    print(f"\n{'':20} {'working tree':>16} {commit.short:>16}   ratio of the pairs, 1 is as fast")
    for comparison in comparisons:
        print(comparison.line)
    print(f"\n{sentence} It took {time.monotonic() - began:.0f} s.")
    return code


if __name__ == "__main__":
    sys.exit(main())
