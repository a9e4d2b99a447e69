"""What tests are written with."""

from __future__ import annotations

from tests.support.database import Claimed, Database, Session

__all__ = ["Claimed", "Database", "Session"]
