-- append_error · the errors of a job, with the error of one more attempt
--
-- The last 20 are kept, so a job that is retried for weeks stays small. A long error is cut.
--
--   p_lost  whether the attempt ended because its worker went silent

create or replace function howdah.append_error(
    p_errors jsonb, p_attempt int, p_worker_id text, p_error text, p_traceback text,
    p_started_at timestamptz, p_ended_at timestamptz, p_lost bool default null
) returns jsonb
language sql stable parallel safe
begin atomic
    select (case when jsonb_typeof(p_errors) <> 'array' then '[]'  -- a plain INSERT may contain anything
                 when jsonb_array_length(p_errors) >= 20 then p_errors - 0 else p_errors end)
        || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'attempt', p_attempt, 'worker_id', p_worker_id, 'error', left(p_error, 10000),
            'traceback', right(p_traceback, 50000), 'started_at', p_started_at, 'ended_at', p_ended_at,
            'lost', p_lost)));
end;

-- lost_in_a_row · how many of a job's last attempts in a row ended because their worker was lost

create or replace function howdah.lost_in_a_row(p_errors jsonb) returns int
language sql stable parallel safe
begin atomic
    select coalesce(min(newest.nth) filter (where newest.error -> 'lost' is distinct from 'true') - 1, count(*))::int
    from (
        select e.error, row_number() over (order by e.nth desc) as nth
        from jsonb_array_elements(case jsonb_typeof(p_errors) when 'array' then p_errors else '[]' end)
                 with ordinality as e (error, nth)
    ) as newest;
end;
