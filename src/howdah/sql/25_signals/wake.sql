-- somebody_sleeps · whether an idle worker waits to be told
--
-- An idle worker holds a shared advisory lock on its listening connection while it
-- sleeps. If the exclusive lock can be had, nobody sleeps, and everybody will look again anyway.
--
-- Locks nothing that outlives the statement.

create or replace function howdah.somebody_sleeps() returns bool
language sql volatile
begin atomic
    select not (pg_try_advisory_lock(howdah.lock_space(), 1) and pg_advisory_unlock(howdah.lock_space(), 1));
end;

-- ring · tell every idle worker that knows a type, when the transaction commits
--
-- '' means "look, whatever your types": a payload is limited to 8000 bytes.

create or replace function howdah.ring(p_job_types text[]) returns void
language sql volatile
begin atomic
    select pg_notify('howdah_wake', case when octet_length(array_to_json(p_job_types)::text) < 7900
                                         then array_to_json(p_job_types)::text else '' end);
end;

-- wake · ring where somebody sleeps: jobs of these types stand in line
--
-- Where nobody sleeps the NOTIFY is spared: a notifying commit waits for every other one.
-- A worker that falls asleep between this look and our commit glances once more.
--
-- Locks nothing that outlives the statement. Wakes every idle worker that knows a type.

create or replace function howdah.wake(p_job_types text[]) returns void
language sql volatile
begin atomic
    select case when howdah.somebody_sleeps() then howdah.ring(p_job_types) end;
end;
