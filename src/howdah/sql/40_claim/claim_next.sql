-- claim_next · pending → claimed
--
-- Claims the next few jobs of one line in one statement: for a worker that was woken and should
-- start its job as soon as possible. It takes no turn, so it should claim few jobs: see wait_for_turn.sql.
--
--   p_worker_id    who claims; a part of the lease
--   p_batch_size   how many jobs at most
--   p_job_type     the type
--   p_after_rank, p_after_ready_at, p_after_id   the position in its line after which it searches; jobs of a higher
--                  priority are found too. The defaults are the position before the whole line
--   returns        the jobs
--
-- It may skip a job that somebody changes at this moment: the next claim finds it. A paused type gives
-- nothing. Locks the rows it takes (for update skip locked). Wakes nobody. Raises 40001 as claim does.

create or replace function howdah.claim_next(
    p_worker_id       text,
    p_batch_size      int,
    p_job_type        text,
    p_after_rank      int          default -2147483648,
    p_after_ready_at  timestamptz  default '-infinity',
    p_after_id        uuid         default '00000000-0000-0000-0000-000000000000'
) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
declare
    v_now timestamptz := howdah.clock();
begin
    if (length(p_worker_id) between 1 and 200 and p_batch_size between 1 and 10000) is not true then
        perform howdah.refuse_claim(p_worker_id, p_batch_size);
    end if;
    return query
    with urgent as materialized (
        select j.ctid from howdah.jobs_live as j
        where j.job_type = p_job_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
          and ~j.priority < p_after_rank
          and (j.run_at is null or j.run_at <= v_now) and (j.expires_at is null or j.expires_at > v_now)
          and not exists (select from howdah.paused_types where job_type = p_job_type)
        order by ~j.priority, j.ready_at, j.id
        limit p_batch_size
        for update skip locked
    ), next as materialized (
        select j.ctid from howdah.jobs_live as j
        where j.job_type = p_job_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
          and (~j.priority, j.ready_at, j.id) > (p_after_rank, p_after_ready_at, p_after_id)
          and (j.run_at is null or j.run_at <= v_now) and (j.expires_at is null or j.expires_at > v_now)
          and not exists (select from howdah.paused_types where job_type = p_job_type)
        order by ~j.priority, j.ready_at, j.id
        limit p_batch_size - (select count(*) from urgent)
        for update skip locked
    )
    update howdah.jobs_live as j
    set status = 'claimed', worker_id = p_worker_id, claimed_at = v_now,
        attempts = least(j.attempts, 2147483646) + 1, started_at = null
    from (select ctid from urgent union all select ctid from next) as taken
    where j.ctid = taken.ctid
    returning j.*;
end;
$$;
