-- resume · jobs of a paused type are claimed again
--
--   returns  whether this call resumed it; false: it was not paused
--
-- Locks one row of paused_types. Wakes idle workers that know the type.

create or replace function howdah.resume(p_job_type text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from howdah.paused_types where job_type = p_job_type;
    if not found then
        return false;
    end if;
    insert into howdah.admission_requests (kind, name)
    select 'limit', r.limit_name from howdah.type_limits as r where r.job_type = p_job_type and r.limit_name is not null;
    if found then
        perform howdah.notify_admission();
    end if;
    perform howdah.wake(array[p_job_type]);
    return true;
end;
$$;
