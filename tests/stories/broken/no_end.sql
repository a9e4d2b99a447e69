-- broken · complete whatever state a job is in: it is completed again and again
create or replace function howdah.complete(
    p_worker_id text, p_ids uuid[], p_attempts int[],
    p_results jsonb[] default null, p_began_ago interval[] default null
) returns setof uuid language sql volatile as $$
    update howdah.jobs as j
    set status = 'completed', completed_at = now(), worker_id = p_worker_id, attempts = l.attempt, result = l.result
    from unnest(p_ids, p_attempts, p_results) as l (id, attempt, result)
    where j.id = l.id
    returning j.id;
$$;
