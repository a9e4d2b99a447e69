"""High availability as people run it: Patroni and etcd decide which PostgreSQL takes writes.

Made by `make test-ha`: Patroni comes from PyPI into `.ha/`, etcd from the system's packages. What
the stories do to such a cluster is in faults/patroni.py.
"""
