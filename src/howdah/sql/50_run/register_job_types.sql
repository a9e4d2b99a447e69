-- register_job_types · a worker registers its job types when it starts
--
-- A JSON array of objects with the names of the columns of howdah.job_types. Enqueues that set neither
-- priority nor max_attempts use these, and those that set no expiry use `expires`. Defaults: priority 100, max_attempts 3,
-- the queue 'default', no timeout, no expiry, no label. max_attempts is at most the option max_attempts_limit. If two workers differ, the last one to start wins.
--
--   select howdah.register_job_types('me', '[{"name": "mail", "max_attempts": 1, "run": "async",
--       "parameters": [{"name": "to", "type": "str", "required": true}], "signature": "1"}]');
--
--   p_version  the version of the worker's code, for people to read
--
-- At most 10,000 types in one call. Locks the rows in the order of their names. Wakes nobody.

create or replace function howdah.register_job_types(
    p_worker_id  text,
    p_types      jsonb,
    p_version    text  default ''
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_most int := howdah.option('max_attempts_limit');
begin
    if jsonb_typeof(p_types) is distinct from 'array' or jsonb_array_length(p_types) > 10000 then
        raise exception using errcode = '22023', message = 'p_types must be a JSON array of at most 10000 objects';
    end if;
    insert into howdah.job_types as known (
        name, priority, max_attempts, queue, timeout, expires, run, parameters, signature, label,
        worker_id, version, first_seen_at, registered_at, last_seen_at)
    select distinct on (t.name)
           t.name, coalesce(t.priority, 100), least(coalesce(t.max_attempts, 3), v_most),
           coalesce(t.queue, 'default'), t.timeout, t.expires, coalesce(t.run, 'async'),
           coalesce(t.parameters, '[]'), coalesce(t.signature, '-'), t.label,
           p_worker_id, p_version, howdah.clock(), howdah.clock(), howdah.clock()
    from jsonb_to_recordset(p_types) as t (
        name text, priority int, max_attempts int, queue text, timeout interval, expires interval, run text,
        parameters jsonb, signature text, label text)
    order by t.name
    on conflict (name) do update
    set priority = excluded.priority, max_attempts = excluded.max_attempts, queue = excluded.queue,
        timeout = excluded.timeout, expires = excluded.expires, run = excluded.run, parameters = excluded.parameters, signature = excluded.signature,
        label = excluded.label, worker_id = excluded.worker_id, version = excluded.version,
        registered_at = excluded.registered_at, last_seen_at = excluded.last_seen_at;
end;
$$;
