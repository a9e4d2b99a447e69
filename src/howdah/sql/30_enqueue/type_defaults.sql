-- type_defaults · the priority, max_attempts and expiry of a job that does not set them
--
-- As the last worker to start has registered them; 100, 3 and none for a type that is not registered. And whether a rule limits
-- the jobs of the type: see 20_tables/type_limits.sql.
--
-- Without `security definer` it is inlined into the statement that calls it. Locks nothing.

create or replace function howdah.type_defaults(p_job_type text)
returns table (priority int, max_attempts int, expires interval, limited bool)
language sql stable
begin atomic
    select coalesce(t.priority, 100), coalesce(t.max_attempts::int, 3), t.expires,
           exists (select from howdah.type_limits as r where r.job_type = p_job_type)
    from (values (p_job_type)) as asked (name) left join howdah.job_types as t on t.name = asked.name;
end;
