-- wake · notify idle workers, if there are any, that jobs of these types are in line
--
-- When no worker sleeps there is no NOTIFY: commits that notify wait for each other.
-- A worker that falls asleep between this check and our commit searches once more.
--
-- Locks nothing that outlives the statement. Wakes every idle worker that knows one of the types.

create or replace function howdah.wake(p_job_types text[]) returns void
language sql volatile
begin atomic
    select case when howdah.has_idle_worker() then howdah.notify_workers(p_job_types) end;
end;
