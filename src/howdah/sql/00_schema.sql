-- schema · everything that howdah owns is in the schema `howdah`, and nothing else is there
--
-- The name is fixed, so every file here is plain SQL that a person can run in psql.
-- Two installations live in two databases.

create schema howdah;

-- What is installed. One row. `compatible_from` is the oldest schema number whose
-- code still works here: older workers can run during a rollout.
create table howdah.installed (
    one             bool  primary key default true check (one),
    schema_number   int   not null,
    compatible_from int   not null,
    fingerprint     text  not null,  -- of the functions: unchanged means nothing to replace
    tables          text  not null,  -- of what holds data: one per number, from its release on
    installed_at    timestamptz not null default now()
);

-- Part of every id made here, see 05_basics/new_id.sql.
create sequence howdah.id_counter;

-- Written by a transaction that must wait for the disk, see 05_basics/durability.sql.
create sequence howdah.waits_for_disk;
