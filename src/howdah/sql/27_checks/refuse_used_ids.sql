-- refuse_used_ids · raise HW002 for an id whose job has ended and is still kept
--
-- An id means one job. Used again, it would mix the events, the leases and the history of two jobs. The primary key
-- refuses the id of a live job; this searches the jobs that have ended. It is called after the INSERT, so a
-- job that ends at this moment is found in one table or the other.

create or replace function howdah.refuse_used_id(p_id uuid) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'HW002',
        message = format('the id %s belongs to a job that has ended', p_id),
        hint = 'Enqueue without an id to run the work again, or requeue that job. '
               'The id is free again once that job was pruned or deleted.';
end;
$$;

-- The inserted ids as a range. It reads the ended jobs whose ids lie between the two and checks which of
-- them are live. Ids are made in the order of time, so the range of a new stream contains few ended jobs,
-- however many new ones. A producer calls it after its COPY.

create or replace function howdah.refuse_used_ids(p_first uuid, p_last uuid) returns void
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    perform howdah.refuse_used_id(j.id) from howdah.jobs_finished as j
    where j.id between p_first and p_last
      and exists (select from howdah.jobs_live as l where l.id = any (array[j.id]));
end;
$$;

-- The ids one by one: each is searched in every day that is kept. Many new ids are checked as a range.

create or replace function howdah.refuse_used_ids(p_ids uuid[]) returns void
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_first uuid;
    v_last  uuid;
begin
    if cardinality(p_ids) > 20 then
        v_first := (select id from unnest(p_ids) as id order by id limit 1);
        v_last  := (select id from unnest(p_ids) as id order by id desc limit 1);
        if howdah.is_new_id(v_first, 3600) and howdah.is_new_id(v_last, 3600) then
            perform howdah.refuse_used_ids(v_first, v_last);
            return;
        end if;
    end if;
    perform howdah.refuse_used_id(used.id)
    from unnest(p_ids) as asked (id)
    cross join lateral (select j.id from howdah.jobs_finished as j where j.id = asked.id limit 1) as used;
end;
$$;
