-- pause · from now on no worker claims jobs of this type
--
-- Holds in every worker, also in foreign ones, as soon as this commits: the claim itself checks it.
-- Running jobs continue. Jobs of the type can still be enqueued; they wait. Jobs that are in line give back the slots of their
-- named limit, so that other types can use them.
--
--   p_reason, p_by  for people to read; p_by is by default the user of the session
--   returns         whether this call paused it; false: it was paused already
--
-- Locks one row of paused_types, and those in line that have a limit (skip locked). Wakes as hand_over.

create or replace function howdah.pause(p_job_type text, p_reason text default null, p_by text default null)
returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_paused bool;
    v_slots  howdah.freed_slot[];
begin
    insert into howdah.paused_types (job_type, paused_at, paused_by, reason)
    values (p_job_type, howdah.clock(), coalesce(p_by, session_user), p_reason)
    on conflict (job_type) do nothing;
    v_paused := found;
    if exists (select from howdah.type_limits as r where r.job_type = p_job_type and r.limit_name is not null) then
        with back as (
            update howdah.jobs_live as j set admission = 'limit', ready_at = null
            where j.id = any (array(
                select w.id from howdah.jobs_live as w
                where w.job_type = p_job_type and w.held_by is null and w.worker_id is null and w.ready_at is not null
                  and w.limited_by is not null and w.admission = 'admitted'
                for update skip locked))
            returning j.job_type, j.limited_by
        )
        select array_agg(row(b.job_type, null, b.limited_by, null, null, null)::howdah.freed_slot) into v_slots from back as b;
        if v_slots is not null then
            perform howdah.hand_over(v_slots);
        end if;
    end if;
    return v_paused;
end;
$$;
