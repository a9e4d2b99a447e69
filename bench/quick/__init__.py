"""Quick: is the working tree slower than a commit? Answered in one run of under three minutes.

    commits.py   which commit, and its source taken out of git
    sides.py     the two sides: working tree and commit, each with its own code
    rounds.py    short measurements of both, taking turns A B B A
    judge.py     ratios within each pair, their median, the verdict

`make bench-quick` runs __main__.py. Everything that measures is shared with bench.compare.
"""
