-- with_expiry · the errors of attempts that failed, which say where a job is not tried again because it expires
--
--   p_errors, p_ids  one error per job
--   p_limit          the option max_attempts_limit
--   returns          the errors, in their order
--
-- Called by retry. Locks nothing.

create or replace function howdah.with_expiry(p_errors text[], p_ids uuid[], p_limit int) returns text[]
language sql stable
begin atomic
    select array_agg(
        case when j.attempts < least(j.max_attempts, p_limit) and j.expires_at is not null
             then format('%s (not tried again: it expires at %s)', left(e.error, 9900), howdah.in_utc(j.expires_at))
             else e.error end
        order by e.nth)
    from unnest(p_errors, p_ids) with ordinality as e (error, id, nth)
    left join howdah.jobs_live as j on j.id = any (array[e.id]);
end;
