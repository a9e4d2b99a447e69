"""High availability: Patroni and etcd decide which PostgreSQL accepts writes.

`make test-ha` installs Patroni from PyPI into `.ha/`, and etcd from the system's packages. The
faults of such a cluster are in faults/patroni.py.

cluster.py   two nodes and an etcd
etcd.py      runs etcd
node.py      a PostgreSQL under Patroni
programs.py  finds etcd and Patroni
"""
