-- type_defaults · the priority and max_attempts of a job that sets neither
--
-- As the last worker to start has registered them; 100 and 3 for a type that is not registered.
--
-- Locks nothing.

create or replace function howdah.type_defaults(p_job_type text)
returns table (priority int, max_attempts int)
language sql stable security definer
begin atomic
    select coalesce(t.priority, 100), coalesce(t.max_attempts::int, 3)
    from (values (p_job_type)) as asked (name) left join howdah.job_types as t on t.name = asked.name;
end;
