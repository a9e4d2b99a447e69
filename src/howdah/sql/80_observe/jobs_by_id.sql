-- jobs_by_id · these jobs, each id once
--
-- If an id was used for several jobs, it returns the live one, else the one that ended last: see
-- 27_checks/refuse_used_ids.sql. The planner can inline it.

create or replace function howdah.jobs_by_id(p_ids uuid[]) returns setof howdah.jobs
language sql stable parallel safe
begin atomic
    select distinct on (j.id) j.* from howdah.jobs as j
    where j.id = any (p_ids)
    order by j.id, j.status in ('pending', 'claimed', 'running') desc, j.finished_on desc,
             j.completed_at desc nulls last;
end;
