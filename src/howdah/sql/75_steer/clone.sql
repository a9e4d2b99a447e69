-- clone · → pending
--
-- Adds a new job like each of these, whatever their status: with the same type, payload, priority
-- and max_attempts, to run at once. It has as long until it expires as the original had when it was enqueued.
--
--   returns  each id found and the id of its clone
--
-- Locks nothing. Wakes idle workers that know the types.

create or replace function howdah.clone(p_ids uuid[]) returns table (id uuid, clone_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
as $$
declare
    v_ids     uuid[];
    v_clones  uuid[];
    v_types   text[];
begin
    with originals as materialized (
        select j.id, howdah.new_id() as clone_id, j.job_type, j.priority, j.data, j.max_attempts,
               howdah.clock() + (j.expires_at - j.created_at) as expires_at
        from howdah.jobs_by_id(p_ids) as j
    ), cloned as (
        insert into howdah.jobs_live (id, job_type, priority, data, max_attempts, expires_at)
        select o.clone_id, o.job_type, o.priority, o.data, o.max_attempts, o.expires_at from originals as o
    )
    select array_agg(o.id), array_agg(o.clone_id), array_agg(distinct o.job_type)
    into v_ids, v_clones, v_types from originals as o;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select * from unnest(v_ids, v_clones);
end;
$$;
