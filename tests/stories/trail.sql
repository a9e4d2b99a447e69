-- trail · tests only: every move of every job, written in the transaction that makes it
--
-- Hangs on the relation `jobs` of the contract and on nothing else of howdah's. A row that goes
-- from one partition to another is seen as a DELETE and an INSERT of one transaction; trail.py
-- puts the two together.

create schema trail;

create table trail.moves (
    nth           bigint       generated always as identity,
    at            timestamptz  not null default clock_timestamp(),
    xid           xid8         not null default pg_current_xact_id(),
    id            uuid         not null,
    job_type      text         not null,
    priority      int          not null,
    created_at    timestamptz  not null,
    max_attempts  int          not null,
    at_once       bool         not null,  -- stood in line from the beginning, or again without waiting
    was           text,
    was_worker    text,
    was_attempts  int,
    now           text,
    now_worker    text,
    now_attempts  int
);

create function trail.see() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into trail.moves (id, job_type, priority, created_at, max_attempts, at_once, now, now_worker, now_attempts)
        values (new.id, new.job_type, new.priority, new.created_at, new.max_attempts, new.run_at is null,
                new.status, new.worker_id, new.attempts);
    elsif tg_op = 'DELETE' then
        insert into trail.moves (id, job_type, priority, created_at, max_attempts, at_once, was, was_worker, was_attempts)
        values (old.id, old.job_type, old.priority, old.created_at, old.max_attempts, old.run_at is null,
                old.status, old.worker_id, old.attempts);
    else
        insert into trail.moves (id, job_type, priority, created_at, max_attempts, at_once,
                                 was, was_worker, was_attempts, now, now_worker, now_attempts)
        values (new.id, new.job_type, new.priority, new.created_at, new.max_attempts, new.run_at is null,
                old.status, old.worker_id, old.attempts, new.status, new.worker_id, new.attempts);
    end if;
    return null;
end;
$$;

create trigger trail_of_new after insert or delete on howdah.jobs
    for each row execute function trail.see();
create trigger trail_of_change after update on howdah.jobs
    for each row when ((old.status, old.worker_id, old.attempts)
                       is distinct from (new.status, new.worker_id, new.attempts))
    execute function trail.see();
