-- broken · complete keeps the fence and says that all is well: a late worker is not told
alter function howdah.complete(text, uuid[], int[], jsonb[], interval[]) rename to complete_fenced;
create function howdah.complete(
    p_worker_id text, p_ids uuid[], p_attempts int[],
    p_results jsonb[] default null, p_began_ago interval[] default null
) returns setof uuid language sql volatile as $$
    select howdah.complete_fenced(p_worker_id, p_ids, p_attempts, p_results, p_began_ago);
    select unnest(p_ids);
$$;
