-- fail · claimed, running → failed
--
-- Records that these attempts failed and that a retry would not help. The job
-- keeps its payload, its progress and the error of every attempt, and can be requeued.
--
--   p_worker_id, p_ids, p_attempts   as claim returned them
--   p_errors, p_tracebacks           what went wrong: one line for people, the rest for developers
--   returns                          the ids this call moved; a missing id was stale
--
-- Locks and wakes as finish does.

create or replace function howdah.fail(
    p_worker_id   text,
    p_ids         uuid[],
    p_attempts    int[],
    p_errors      text[],
    p_tracebacks  text[]      default null,
    p_began_ago   interval[]  default null
) returns setof uuid
language sql volatile security definer
begin atomic
    select howdah.finish('failed', p_worker_id, p_ids, p_attempts, p_errors, p_tracebacks, null, p_began_ago);
end;
