-- next_due_in · how long until the next waiting job is due; null where none waits

create or replace function howdah.next_due_in() returns interval
language sql stable
begin atomic
    select j.run_at - howdah.clock() from howdah.jobs_live as j
    where j.worker_id is null and j.ready_at is null and (j.admission is null or j.admission = 'time' or j.admission = 'backoff')
    order by j.run_at limit 1;
end;
