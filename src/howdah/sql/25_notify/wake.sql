-- wake · ring where somebody sleeps: jobs of these types stand in line
--
-- Where nobody sleeps the NOTIFY is spared: a notifying commit waits for every other one.
-- A worker that falls asleep between this look and our commit glances once more.
--
-- Locks nothing that outlives the statement. Wakes every idle worker that knows a type.

create or replace function howdah.wake(p_job_types text[]) returns void
language sql volatile
begin atomic
    select case when howdah.has_idle_worker() then howdah.notify_workers(p_job_types) end;
end;
