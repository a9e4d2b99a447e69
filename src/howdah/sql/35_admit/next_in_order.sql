-- next_in_order · the jobs of an ordered key that were enqueued first, of those that wait for its slot
--
-- Jobs of one key may have several priorities, and the index has these one after the other. So this reads the first jobs of each.
--
--   p_limit  how many jobs at most
--   returns  where their rows are in jobs_live, in the order of enqueueing; none: no job waits
--
-- Called by hand_over, admit and claim_run only. Locks nothing.

create or replace function howdah.next_in_order(p_job_type text, p_key text, p_limit int default 1) returns setof tid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rank   int := -2147483648;
    v_ranks  int[];
begin
    loop
        select ~j.priority into v_rank
        from howdah.jobs_live as j
        where j.job_type = p_job_type and j.key = p_key and j.key is not null
          and j.admission = 'slot' and j.admission is not null and ~j.priority >= v_rank
        order by ~j.priority, j.arrival limit 1;
        exit when not found;
        v_ranks := v_ranks || v_rank;
        exit when v_rank = 2147483647;
        v_rank := v_rank + 1;
    end loop;
    return query
    select f.ctid from unnest(v_ranks) as r (rank)
    cross join lateral (
        select j.ctid, j.arrival from howdah.jobs_live as j
        where j.job_type = p_job_type and j.key = p_key and j.key is not null
          and j.admission = 'slot' and j.admission is not null and ~j.priority = r.rank
        order by j.arrival limit p_limit) as f
    order by f.arrival limit p_limit;
end;
$$;
