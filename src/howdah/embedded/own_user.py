"""Own user: a user id for root's server that no account and no other program has.

Comes before  root.py, which runs the server as this user

Root may become any user id; it needs no account. The ids below are in no range that
distributions or systemd give away, and below 65536, which containers without privileges
can use too. The id follows from the home's path, so every start finds the same one.

initdb insists on an account's name, so it runs with the id of an existing account. It then
still has the group of its own: the kernel lets no other process of that account look into it,
and the folder it works in is open to that group only (cluster.py).
"""

from __future__ import annotations

import grp
import pwd
from dataclasses import dataclass

from howdah.embedded.home import Home

IDS = range(60_800, 61_184)
LENDERS = ("postgres", "nobody")  # accounts whose name initdb may use


@dataclass(frozen=True, slots=True)
class User:
    uid: int
    gid: int
    name: str  # for messages


def own_user(home: Home) -> User | None:
    """Choose the free id for this home; None if every id has an account."""
    first = int(home.fingerprint, 16) % len(IDS)
    for step in range(len(IDS)):
        uid = IDS[(first + step) % len(IDS)]
        if not _has_account(uid):
            return nameless(uid, uid)
    return None


def nameless(uid: int, gid: int) -> User:
    return User(uid, gid, f"user id {uid}")


def lender() -> User | None:
    """Find an ordinary account; None if there is none."""
    for name in LENDERS:
        try:
            return account(pwd.getpwnam(name))
        except KeyError:
            continue
    return None


def account(entry: pwd.struct_passwd) -> User:
    return User(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _has_account(id: int) -> bool:
    for look in (pwd.getpwuid, grp.getgrgid):
        try:
            look(id)
        except KeyError:
            continue
        return True
    return False
