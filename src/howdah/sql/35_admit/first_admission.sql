-- first_admission · what a new job waits for before it joins the line
--
--   p_due      whether its time has come
--   admission  null: for nothing; it is a plain job, whether it has a key or not
--   limited_by the limit that it needs, if any
--
-- Locks nothing.

create or replace function howdah.first_admission(p_job_type text, p_key text, p_due bool)
returns table (admission text, limited_by text)
language sql stable security definer
begin atomic
    select case when l.name is null and (p_key is null or (r.job_type is not null and r.at_once is null)) then null
                when not p_due then 'time'
                when p_key is not null and (r.job_type is null or r.at_once is not null) then 'slot'
                else 'limit' end,
           case when l.per_key then l.name || ':' || coalesce(p_key, '') else l.name end
    from (values (p_job_type)) as asked (name)
    left join howdah.type_limits as r on r.job_type = asked.name
    left join howdah.limits as l on l.name = r.limit_name;
end;

-- is_ordered · whether the jobs of a key of this type run in the order of enqueueing

create or replace function howdah.is_ordered(p_job_type text) returns bool
language sql stable security definer
begin atomic
    select coalesce((select r.ordered from howdah.type_limits as r where r.job_type = p_job_type), false);
end;
