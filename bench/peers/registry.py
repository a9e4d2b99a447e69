"""Registry of the peers: howdah first, then its peers on PostgreSQL, then its peers on Redis."""

from __future__ import annotations

from bench.peer import Peer
from bench.peers import (
    arq,
    awa,
    celery,
    dramatiq,
    graphile_worker,
    howdah,
    pg_boss,
    pgqueuer,
    procrastinate,
)

PEERS: dict[str, Peer] = {
    module.PEER.name: module.PEER
    for module in (
        howdah,
        graphile_worker,
        pg_boss,
        pgqueuer,
        awa,
        procrastinate,
        dramatiq,
        arq,
        celery,
    )
}
