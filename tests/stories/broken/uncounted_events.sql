-- broken · emit counts events that it does not keep
create or replace function howdah.emit(
    p_worker_id text, p_ids uuid[], p_attempts int[], p_kinds text[], p_data jsonb[]
) returns setof uuid language sql volatile as $$
    update howdah.jobs as j set events_count = j.events_count + 1
    from unnest(p_ids) as l (id) where j.id = l.id
    returning j.id;
$$;
