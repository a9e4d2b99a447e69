"""Peers: one folder for howdah and one for each job queue it is compared with.

Each folder's `PEER` is what the benchmark knows of it; roster.py lists them all. Nothing is
imported here, because drivers run in environments that hold nothing but their own peer.
"""
