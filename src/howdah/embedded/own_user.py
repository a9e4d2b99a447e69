"""Own user: a user id for root's server that no account and no other program has.

Root may become any user id; it needs no account. The ids below are in no range that
distributions or systemd assign, and below 65536, so containers without privileges can use them
too. The id is computed from the path of the home, so every start finds the same one.

initdb needs the name of an account, so it runs with the id of an existing account, but with the
group of the server: the kernel lets no other process of that account inspect it, and only that
group can enter the folder that it works in (cluster.py).
"""

from __future__ import annotations

import grp
import pwd
from dataclasses import dataclass

from howdah.embedded.home import Home

IDS = range(60_800, 61_184)
INITDB_ACCOUNTS = ("postgres", "nobody")  # accounts whose name initdb may use


@dataclass(frozen=True, slots=True)
class User:
    uid: int
    gid: int
    name: str  # for messages


def own_user(home: Home) -> User | None:
    """Choose the id for this home; None if every id has an account."""
    first = int(home.fingerprint, 16) % len(IDS)
    for step in range(len(IDS)):
        uid = IDS[(first + step) % len(IDS)]
        if not _has_account(uid):
            return user_without_account(uid, uid)
    return None


def user_without_account(uid: int, gid: int) -> User:
    return User(uid, gid, f"user id {uid}")


def initdb_account() -> User | None:
    """Return the account that initdb runs as; None if there is none."""
    for name in INITDB_ACCOUNTS:
        try:
            return account(pwd.getpwnam(name))
        except KeyError:
            continue
    return None


def account(entry: pwd.struct_passwd) -> User:
    return User(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _has_account(id: int) -> bool:
    for find in (pwd.getpwuid, grp.getgrgid):
        try:
            find(id)
        except KeyError:
            continue
        return True
    return False
