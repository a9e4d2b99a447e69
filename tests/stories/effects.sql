-- effects · tests only: what handlers write into the same database, each row with its transaction

create schema story_effects;

create table story_effects.effects (
    job      uuid  not null,
    pid      int   not null,
    attempt  int   not null,
    xid      xid8  not null default pg_current_xact_id()
);
