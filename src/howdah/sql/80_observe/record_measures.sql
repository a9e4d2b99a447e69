-- record_measures · a worker reports its last few seconds, and learns whether to stop
--
-- A JSON array of objects, one per job type, with the names of the columns of howdah.measures.
-- Foreign workers may call it too; without it they appear only in the counts.
--
--   select howdah.record_measures('me', '[{"job_type": "mail", "completed": 3, "run": [0, 0, 3]}]');
--
--   returns  whether somebody asked this worker to drain since its last call
--
-- Locks nothing. Wakes nobody.

create or replace function howdah.record_measures(p_worker_id text, p_measures jsonb default '[]') returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if jsonb_typeof(p_measures) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_measures must be a JSON array of objects';
    end if;
    insert into howdah.measures (
        at, worker_id, job_type, completed, failed, retried, cancelled, released,
        pickup, run, pickup_seconds, run_seconds)
    select howdah.clock(), p_worker_id, m.job_type,
           coalesce(m.completed, 0), coalesce(m.failed, 0), coalesce(m.retried, 0),
           coalesce(m.cancelled, 0), coalesce(m.released, 0),
           coalesce(m.pickup, '{}'), coalesce(m.run, '{}'),
           coalesce(m.pickup_seconds, 0), coalesce(m.run_seconds, 0)
    from jsonb_to_recordset(p_measures) as m (
        job_type text, completed bigint, failed bigint, retried bigint, cancelled bigint, released bigint,
        pickup bigint[], run bigint[], pickup_seconds double precision, run_seconds double precision);
    delete from howdah.drain_requests where worker_id = p_worker_id;
    return found;
end;
$$;
