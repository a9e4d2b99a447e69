-- notify_schedules · notify idle workers that a schedule was changed, when the transaction commits
--
-- They then ask when the next job or firing is due: see promote_due. A worker that does not sleep asks before it sleeps.
--
-- Locks nothing that outlives the statement. Wakes every idle worker, whatever its types.

create or replace function howdah.notify_schedules() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if howdah.has_idle_worker() then
        perform pg_notify('howdah_due', '');
    end if;
end;
$$;
