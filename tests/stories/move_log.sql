-- move_log · tests only: every move of every job, written in the transaction that makes it
--
-- Needs only the relation `jobs` of the contract. A row that changes its partition is seen as a
-- DELETE and an INSERT of one transaction; move_log.py joins the two.

create schema move_log;

create table move_log.moves (
    nth           bigint       generated always as identity,
    at            timestamptz  not null default clock_timestamp(),
    began         timestamptz  not null default now(),  -- the transaction
    xid           xid8         not null default pg_current_xact_id(),
    snapshot      pg_snapshot  not null default pg_current_snapshot(),
    id            uuid         not null,
    job_type      text         not null,
    priority      int          not null,
    created_at    timestamptz  not null,
    max_attempts  int          not null,
    at_once       bool         not null,  -- it joined the line at once: no `run_at`
    expires_at    timestamptz,
    before_status    text,
    before_worker    text,
    before_attempts  int,
    after_status     text,
    after_worker     text,
    after_attempts   int
);
create index on move_log.moves (at);

create function move_log.record() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into move_log.moves (id, job_type, priority, created_at, max_attempts, at_once, expires_at, after_status, after_worker, after_attempts)
        values (new.id, new.job_type, new.priority, new.created_at, new.max_attempts, new.run_at is null, new.expires_at,
                new.status, new.worker_id, new.attempts);
    elsif tg_op = 'DELETE' then
        insert into move_log.moves (id, job_type, priority, created_at, max_attempts, at_once, expires_at, before_status, before_worker, before_attempts)
        values (old.id, old.job_type, old.priority, old.created_at, old.max_attempts, old.run_at is null, old.expires_at,
                old.status, old.worker_id, old.attempts);
    else
        insert into move_log.moves (id, job_type, priority, created_at, max_attempts, at_once, expires_at,
                                 before_status, before_worker, before_attempts, after_status, after_worker, after_attempts)
        values (new.id, new.job_type, new.priority, new.created_at, new.max_attempts, new.run_at is null, new.expires_at,
                old.status, old.worker_id, old.attempts, new.status, new.worker_id, new.attempts);
    end if;
    return null;
end;
$$;

create trigger move_log_insert_delete after insert or delete on howdah.jobs
    for each row execute function move_log.record();
create trigger move_log_update after update on howdah.jobs
    for each row when ((old.status, old.worker_id, old.attempts)
                       is distinct from (new.status, new.worker_id, new.attempts))
    execute function move_log.record();
