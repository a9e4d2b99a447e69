"""Quick: is the working tree slower than a commit? One run answers in less than three minutes.

    commits.py   choose the commit, and extract its source from git
    variants.py  the working tree and the commit, each with its own code
    rounds.py    short measurements of both, which take turns A B B A
    verdict.py   the ratio of each pair, their median, the verdict

`make bench-quick` runs __main__.py. It measures with bench/measure, as bench.compare does.
"""
