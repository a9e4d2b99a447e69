-- admission log · tests only: when each job was admitted, and every version of every rule
--
-- Written in the transactions that do it, as move_log.moves is.

create table move_log.admissions (
    nth         bigint       generated always as identity,
    at          timestamptz  not null default clock_timestamp(),
    began       timestamptz  not null default now(),  -- the transaction
    id          uuid         not null,
    held        bool         not null,                -- by a worker
    admission   text,
    limited_by  text
);

create function move_log.record_admission() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    insert into move_log.admissions (id, held, admission, limited_by)
    values (new.id, new.worker_id is not null, new.admission, new.limited_by);
    return null;
end;
$$;

create trigger admission_log_insert after insert on howdah.jobs
    for each row when (new.admission is not null and new.status in ('pending', 'claimed', 'running'))
    execute function move_log.record_admission();
create trigger admission_log_update after update on howdah.jobs
    for each row when ((old.admission, old.limited_by) is distinct from (new.admission, new.limited_by)
                       and new.status in ('pending', 'claimed', 'running'))
    execute function move_log.record_admission();

-- the rule of a job type has `kind` 'type', a named limit 'limit'
create table move_log.rules (
    nth         bigint       generated always as identity,
    at          timestamptz  not null default clock_timestamp(),
    xid         xid8         not null default pg_current_xact_id(),
    kind        text         not null,
    name        text         not null,
    at_once     int,
    ordered     bool,
    limit_name  text,        -- the named limit of a job type
    per_second  float8,      -- the rate; null: any number
    burst       int,
    removed     bool         not null
);

create function move_log.record_rule() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_rule  jsonb := to_jsonb(coalesce(new, old));
begin
    insert into move_log.rules (kind, name, at_once, ordered, limit_name, per_second, burst, removed)
    values (case tg_table_name when 'limits' then 'limit' else 'type' end,
            coalesce(v_rule ->> 'name', v_rule ->> 'job_type'),
            (v_rule ->> 'at_once')::int,
            (v_rule ->> 'ordered')::bool,
            v_rule ->> 'limit_name',
            (v_rule ->> 'rate')::int / extract(epoch from (v_rule ->> 'per')::interval),
            (v_rule ->> 'burst')::int,
            tg_op = 'DELETE');
    return null;
end;
$$;

create trigger rule_log after insert or update or delete on howdah.limits
    for each row execute function move_log.record_rule();
create trigger rule_log after insert or update or delete on howdah.type_limits
    for each row execute function move_log.record_rule();
