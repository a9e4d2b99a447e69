"""Hostile strings: each would do harm if anything read it as code."""

from __future__ import annotations

CANARY = "howdah_canary"

# Each ends a literal, an identifier, a comment, an array, a format or a markup, and goes on.
STRINGS = (
    f"'; drop table {CANARY}; --",
    f'"; drop table {CANARY}; --',
    f"\\'; drop table {CANARY}; --",
    f"$$; drop table {CANARY}; $$",
    f"$1; drop table {CANARY}",
    f"'); drop table {CANARY}; select ('",
    f"' || (select count(*) from {CANARY}) || '",
    f"*/ drop table {CANARY}; /*",
    f"}}','{{'); drop table {CANARY}; --",
    "{a,b}",
    "%s %I %L %1$s %%",
    "{0.__class__} {} {{}}",
    ":value %(value)s ?",
    "howdah_wake, howdah_news",
    "[bold red]x[/] \\[",
    "__import__('os').system('false')",
    "cos\nsystem\n(S'false'\ntR.",
    "../../etc/passwd",
    "NULL",
    "\u202egnp.exe",
    "\u02bc\uff07'",  # quotes that some encodings turn into the real one
)
