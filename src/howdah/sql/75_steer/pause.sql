-- pause · from now on no worker claims jobs of this type
--
-- Holds in every worker, also in foreign ones, as soon as this commits: the claim itself checks it.
-- Running jobs continue. Jobs of the type can still be enqueued; they wait.
--
--   p_reason, p_by  for people to read; p_by is by default the user of the session
--   returns         whether this call paused it; false: it was paused already
--
-- Locks one row of paused_types. Wakes nobody.

create or replace function howdah.pause(p_job_type text, p_reason text default null, p_by text default null)
returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into howdah.paused_types (job_type, paused_at, paused_by, reason)
    values (p_job_type, howdah.clock(), coalesce(p_by, session_user), p_reason)
    on conflict (job_type) do nothing;
    return found;
end;
$$;
