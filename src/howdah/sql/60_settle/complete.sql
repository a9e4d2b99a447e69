-- complete · claimed, running → completed
--
-- Records that these attempts succeeded.
--
-- The lease must match: the worker that claimed the job, and the number of the attempt. A worker that
-- was given up and reports late has an old lease, which matches no row and changes nothing.
--
--   p_worker_id, p_ids, p_attempts   as claim returned them
--   p_results                        what each handler returned, if it did
--   p_began_ago                      how long ago each handler began
--   returns                          the ids this call moved; a missing id was stale
--
-- Locks and wakes as finish does.

create or replace function howdah.complete(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_results    jsonb[]     default null,
    p_began_ago  interval[]  default null
) returns setof uuid
language sql volatile security definer
begin atomic
    select howdah.finish('completed', p_worker_id, p_ids, p_attempts, null, null, p_results, p_began_ago);
end;
