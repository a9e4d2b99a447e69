-- forget_unique_keys · delete the unique keys that no job holds any more
--
-- Those that `finish` could not delete, of jobs that ended by a plain statement or were deleted, and those whose time is over.
--
--   returns  how many were deleted
--
-- Reads all keys, about 0.3 s of CPU time per million. Locks the rows it may delete (skip locked). Wakes nobody.

create or replace function howdah.forget_unique_keys() returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_free    tid[];
    v_deleted bigint;
begin
    v_free := array(
        select k.ctid from howdah.unique_keys as k
        where case when k.holds_until is null
                   then not exists (select from howdah.jobs_live as j where j.id = k.job_id)
                   else k.holds_until <= howdah.clock() end
        for update skip locked);
    -- asked again: a job may have taken one of them before we had its lock
    delete from howdah.unique_keys as k
    where k.ctid = any (v_free)
      and case when k.holds_until is null
               then not exists (select from howdah.jobs_live as j where j.id = k.job_id)
               else k.holds_until <= howdah.clock() end;
    get diagnostics v_deleted = row_count;
    return v_deleted;
end;
$$;
