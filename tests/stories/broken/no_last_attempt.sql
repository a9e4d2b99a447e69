-- broken · retry for ever: the last attempt is not the last
create or replace function howdah.retry(
    p_worker_id text, p_ids uuid[], p_attempts int[], p_errors text[],
    p_delays interval[] default null, p_tracebacks text[] default null, p_began_ago interval[] default null
) returns table (id uuid, status text) language sql volatile as $$
    update howdah.jobs as j set status = 'pending', worker_id = null, claimed_at = null
    from unnest(p_ids, p_attempts) as l (id, attempt)
    where j.id = l.id and j.worker_id = p_worker_id and j.attempts = l.attempt
    returning j.id, 'pending';
$$;
