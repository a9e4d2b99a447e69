-- wake · tell idle workers that jobs of these types stand in line
--
-- An idle worker holds a shared advisory lock on its listening connection while it
-- sleeps. If the exclusive lock can be had, nobody sleeps, everybody will look again
-- anyway, and the NOTIFY is spared: a notifying commit waits for every other one.
-- A worker that falls asleep between this look and our commit glances once more.
--
-- Locks nothing that outlives the statement. Wakes every idle worker that knows a type.

create or replace function howdah.wake(p_job_types text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_space   int := howdah.lock_space();
    v_payload text;
begin
    if not (pg_try_advisory_lock(v_space, 1) and pg_advisory_unlock(v_space, 1)) then
        v_payload := array_to_json(p_job_types)::text;
        -- '' means "look, whatever your types": a payload is limited to 8000 bytes
        perform pg_notify('howdah_wake', case when octet_length(v_payload) < 7900 then v_payload else '' end);
    end if;
end;
$$;
