"""Registry of the peers: howdah first, then its peers on PostgreSQL, then its peers on Redis.

In a turn they are measured in this order, and the last one is followed by the first. So the peers
that howdah is compared with most are its neighbours.
"""

from __future__ import annotations

from bench.peer import Peer
from bench.peers import (
    arq,
    awa,
    celery,
    chancy,
    dramatiq,
    graphile_worker,
    howdah,
    oban,
    pg_boss,
    pgqueuer,
    procrastinate,
    saq,
)

PEERS: dict[str, Peer] = {
    module.PEER.name: module.PEER
    for module in (
        howdah,
        graphile_worker,
        pgqueuer,
        pg_boss,
        awa,
        chancy,
        oban,
        procrastinate,
        arq,
        dramatiq,
        celery,
        saq,
    )
}
