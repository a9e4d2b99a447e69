-- next_due_in · how long until the next waiting job or schedule is due; null where none waits
--
-- next_firing_in: the same for schedules alone. '0' where the next firing of one is to be computed.

create or replace function howdah.next_firing_in() returns interval
language sql stable
begin atomic
    select case when s.next_firing is null then '0'::interval else s.next_firing - howdah.clock() end
    from (select d.next_firing from howdah.schedules as d
          where d.paused_at is null and d.orphaned_at is null
          order by d.next_firing nulls first limit 1) as s
    where s.next_firing is null or s.next_firing < 'infinity';
end;

create or replace function howdah.next_due_in() returns interval
language sql stable
begin atomic
    select least(
        (select j.run_at - howdah.clock() from howdah.jobs_live as j
         where j.worker_id is null and j.ready_at is null and (j.admission is null or j.admission = 'time' or j.admission = 'backoff')
         order by j.run_at limit 1),
        howdah.next_firing_in());
end;
