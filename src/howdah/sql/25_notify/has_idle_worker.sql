-- has_idle_worker · whether an idle worker waits to be told
--
-- An idle worker holds a shared advisory lock on its listening connection while it
-- sleeps. If the exclusive lock can be had, nobody sleeps, and everybody will look again anyway.
--
-- Locks nothing that outlives the statement.

create or replace function howdah.has_idle_worker() returns bool
language sql volatile
begin atomic
    select not (pg_try_advisory_lock(howdah.lock_space(), 1) and pg_advisory_unlock(howdah.lock_space(), 1));
end;
