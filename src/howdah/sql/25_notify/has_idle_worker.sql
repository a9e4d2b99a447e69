-- has_idle_worker · whether any worker sleeps and must be notified
--
-- An idle worker holds a shared advisory lock on its listening connection while it
-- sleeps. If we get the exclusive lock, no worker sleeps, and all of them will search again anyway.
--
-- Locks nothing that outlives the statement.

create or replace function howdah.has_idle_worker() returns bool
language sql volatile
begin atomic
    select not (pg_try_advisory_lock(howdah.lock_space(), 1) and pg_advisory_unlock(howdah.lock_space(), 1));
end;
