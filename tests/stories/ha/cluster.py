"""Cluster: two nodes and an etcd; one node leads, the other is its standby."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.stories.ha.etcd import etcd
from tests.stories.ha.node import Node


@contextmanager
def cluster(folder: Path, *, synchronous: bool = True) -> Generator[list[Node]]:
    """Run a cluster; yields its nodes, the one that leads first."""
    password, keys = secrets.token_hex(8), secrets.token_hex(8)
    with ExitStack() as stack:
        port = stack.enter_context(etcd(folder / "etcd"))
        nodes: list[Node] = []
        for name in ("one", "two"):
            node = Node(folder / name, name, port, password, keys, synchronous=synchronous)
            stack.callback(node.remove)
            node.start()
            if not nodes:
                node.until("it leads", "leads")
            nodes.append(node)
        nodes[1].until("it follows", "sync_standby" if synchronous else "replica")
        yield nodes
