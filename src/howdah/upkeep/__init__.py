"""Upkeep: a worker's share in promote, recover and prune.

upkeep.py    the loop that does one round after another
next_due.py  when the next waiting job is due
"""
