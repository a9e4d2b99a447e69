-- admission_requests · keys and limits that `admit` must look at, once the transaction that wrote the row is committed
--
-- Usually empty: each look deletes the rows that it reads. A look begins after the transactions that the last look of the same
-- session has seen, so it does not read the dead rows before that.

create table howdah.admission_requests (
    xid         xid8  not null default pg_current_xact_id(),
    kind        text  not null,     -- key; limit; type: all keys of a type, those after `name`; rule: apply the rule of a type again
    job_type    text  collate "C",
    name        text  collate "C",  -- a key, or the limited_by of jobs; rule: when all older transactions than this are over
    claimed_at  timestamptz         -- limit: when the job was claimed that has given back its slot
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);

create index admission_requests_xid on howdah.admission_requests (xid);

-- The order of enqueueing, see the column `arrival` of jobs.
create sequence howdah.arrivals;

-- Until when a session promised to look again, in milliseconds since 1970: producers need not notify anybody before.
create sequence howdah.next_look_by;

-- Until when hand-overs search only behind the jobs that have ended, in milliseconds since 1970: see hand_over.
create sequence howdah.search_behind_until;

-- A slot that becomes free: what hand_over needs to know of the job that held it.
create type howdah.freed_slot as (
    job_type    text,
    key         text,         -- null: the slot of its key is not free, or it has none
    limited_by  text,         -- null: the same for its limit
    claimed_at  timestamptz,
    rank        int,          -- with arrival, its place among the jobs that waited: a search may begin behind it; null: not known
    arrival     bigint
);
