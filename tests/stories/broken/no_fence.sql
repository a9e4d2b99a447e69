-- broken · complete by id alone: a late worker settles another's attempt
create or replace function howdah.complete(
    p_worker_id text, p_ids uuid[], p_attempts int[],
    p_results jsonb[] default null, p_began_ago interval[] default null
) returns setof uuid language sql volatile as $$
    update howdah.jobs as j set status = 'completed', progress = 100, completed_at = now(), result = l.result
    from unnest(p_ids, p_results) as l (id, result)
    where j.id = l.id and j.status in ('claimed', 'running')
    returning j.id;
$$;
