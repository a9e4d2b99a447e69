-- refuse_holder_mismatch · raise 23514 for a live job whose status and worker_id contradict each other
--
-- Not a CHECK of jobs_live: every enqueue and every claim would pay for it, though they cannot violate it.
-- Plain statements can; triggers check those.

create or replace function howdah.refuse_holder_mismatch(p_id uuid, p_status text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = '23514', constraint = 'pending_means_held_by_nobody',
        message = format('job %s would be %s %s a worker_id: pending_means_held_by_nobody', p_id, p_status,
                         case p_status when 'pending' then 'with' else 'without' end),
        hint = 'A pending job has no worker_id; one that is claimed or running has one.';
end;
$$;
