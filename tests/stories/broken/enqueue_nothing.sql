-- broken · enqueue acknowledges what it did not keep
create or replace function howdah.enqueue_many(p_jobs jsonb) returns setof uuid language sql volatile as $$
    select howdah.new_id() from jsonb_array_elements(p_jobs);
$$;
