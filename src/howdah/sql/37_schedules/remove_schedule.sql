-- remove_schedule · remove a schedule; its jobs stay
--
-- One that code declares comes back when the next worker starts: pause it instead.
--
--   returns  whether there was one
--
-- Locks one row of schedules. Wakes nobody.

create or replace function howdah.remove_schedule(p_name text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from howdah.schedules as s where s.name = p_name;
    return found;
end;
$$;
