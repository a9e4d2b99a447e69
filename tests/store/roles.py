"""Roles: a producer, a worker and an observer with the privileges that `grants` prints."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from howdah.store import engine_files
from tests.support import Database, Session
from tests.support.databases import Databases

ROLES = ("producer", "worker", "observer")


@dataclass(frozen=True)
class Roles:
    """Sessions of the three roles, and of the owner, on one database."""

    owner: Database
    producer: Session
    worker: Session
    observer: Session
    nobody: Session  # a role without any privilege

    def named(self, name: str) -> Session:
        return {
            "producer": self.producer,
            "worker": self.worker,
            "observer": self.observer,
            "nobody": self.nobody,
        }[name]


@contextmanager
def roles_in(databases: Databases) -> Generator[Roles]:
    """Make a guarded database, the roles, and a session for each of them."""
    mark = secrets.token_hex(4)
    # these names need quotes: a role may have any name
    names = {role: f'howdah "{role}" {mark}' for role in (*ROLES, "nobody")}
    dsn = databases.create_guarded()
    owner = Database(dsn)
    try:
        for name in names.values():
            owner.execute(f"create role {_quoted(name)}")
        for _ in range(2):  # a second time changes nothing
            owner.execute(engine_files.grants(*(names[role] for role in ROLES)).replace("%", "%%"))
        sessions: dict[str, Session] = {}
        for role, name in names.items():
            sessions[role] = owner.session()
            sessions[role].execute(f"set session authorization {_quoted(name)}")
        yield Roles(owner, **sessions)
    finally:
        owner.close()
        databases.drop(dsn)
        with psycopg.connect(databases.server_dsn, autocommit=True) as connection:
            for name in names.values():
                connection.execute(f"drop role {_quoted(name)}".encode())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
