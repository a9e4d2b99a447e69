"""Bench: howdah and its peers, measured in one run on one machine.

`make bench` runs compare.py. A peer is a folder of peers/: `__init__.py` says what it is and with
which settings it runs, `driver.py` (or `driver.mjs`) runs inside the peer's own environment.
Records of real runs are in records/.
"""
