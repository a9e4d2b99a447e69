-- next_in_order · the job of an ordered key that was enqueued first, of those that wait for its slot
--
-- Jobs of one key may have several priorities, and the index has these one after the other. So this reads the first job of each.
--
--   returns  where its row is in jobs_live; null: no job waits
--
-- Called by hand_over and admit only. Locks nothing.

create or replace function howdah.next_in_order(p_job_type text, p_key text) returns tid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rank     int := -2147483648;
    v_arrival  bigint;
    v_spot     tid;
    v_best     bigint;
    v_best_at  tid;
begin
    loop
        select ~j.priority, j.arrival, j.ctid into v_rank, v_arrival, v_spot
        from howdah.jobs_live as j
        where j.job_type = p_job_type and j.key = p_key and j.key is not null
          and j.admission = 'slot' and j.admission is not null and ~j.priority >= v_rank
        order by ~j.priority, j.arrival limit 1;
        exit when not found;
        if v_best is null or v_arrival < v_best then
            v_best := v_arrival;
            v_best_at := v_spot;
        end if;
        exit when v_rank = 2147483647;
        v_rank := v_rank + 1;
    end loop;
    return v_best_at;
end;
$$;
