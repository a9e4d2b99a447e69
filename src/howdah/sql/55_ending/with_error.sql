-- with_error · a job's errors with one more attempt's error at the end
--
-- The last 20 are kept: a job that is retried for weeks does not grow for ever.

create or replace function howdah.with_error(
    p_errors jsonb, p_attempt int, p_worker_id text, p_error text, p_traceback text,
    p_started_at timestamptz, p_ended_at timestamptz
) returns jsonb
language sql stable parallel safe
begin atomic
    select (case when jsonb_typeof(p_errors) <> 'array' then '[]'  -- a plain INSERT may say anything
                 when jsonb_array_length(p_errors) >= 20 then p_errors - 0 else p_errors end)
        || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'attempt', p_attempt, 'worker_id', p_worker_id, 'error', p_error,
            'traceback', p_traceback, 'started_at', p_started_at, 'ended_at', p_ended_at)));
end;
