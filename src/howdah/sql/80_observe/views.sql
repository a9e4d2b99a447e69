-- observe · what people and dashboards read

-- How many jobs of each type have which status: live ones are counted, finished ones come from finished_counts.
create or replace view howdah.queue_depth as
select job_type, status::text as status, count(*) as jobs from howdah.jobs_live group by 1, 2
union all
select job_type, status, sum(jobs)::bigint from howdah.finished_counts group by 1, 2 having sum(jobs) <> 0;

-- Which workers are alive, how long each is silent, and how many jobs it holds.
create or replace view howdah.worker_health as
select w.id, w.started_at, w.beat_at, howdah.clock() - w.beat_at as silent_for, w.silent_after,
       w.beat_at >= howdah.clock() - w.silent_after as alive, w.given_up_at, w.info,
       (select count(*) from howdah.jobs_live as j where j.held_by = w.id) as holds
from howdah.workers as w;
