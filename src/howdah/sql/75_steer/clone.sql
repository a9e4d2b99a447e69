-- clone · → pending
--
-- Adds a new job like each of these, whatever their status: with the same type, payload, priority, concurrency key
-- and max_attempts, to run at once. It has as long until it expires as the original had when it was enqueued. It is the last in the
-- order of its key. It has no unique key and no steps.
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
    v_limited uuid[];
begin
    with originals as materialized (
        select j.id, howdah.new_id() as clone_id, j.job_type, j.priority, j.data, j.max_attempts,
               howdah.clock() + (j.expires_at - j.created_at) as expires_at, j.key
        from howdah.jobs_by_id(p_ids) as j
    ), cloned as (
        insert into howdah.jobs_live (id, job_type, priority, data, max_attempts, expires_at, key)
        select o.clone_id, o.job_type, o.priority, o.data, o.max_attempts, o.expires_at, o.key from originals as o
    )
    select array_agg(o.id), array_agg(o.clone_id), array_agg(distinct o.job_type),
           array_agg(o.clone_id) filter (where o.key is not null or o.job_type in (select r.job_type from howdah.type_limits as r))
    into v_ids, v_clones, v_types, v_limited from originals as o;
    if v_limited is not null then
        perform howdah.limit_new(v_limited);
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select * from unnest(v_ids, v_clones);
end;
$$;
