-- enqueue_many · → pending
--
-- Hands a set of jobs over: a JSON array of objects with the names of enqueue's
-- parameters without `p_`. What is left out has enqueue's default.
--
--   select howdah.enqueue_many('[{"job_type": "mail", "data": {"to": 1}}, {"job_type": "mail"}]');
--
--   returns  their ids, in the order given
--
-- All or nothing. Locks nothing. Wakes idle workers once for the whole set.

create or replace function howdah.enqueue_many(p_jobs jsonb) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_limit  int         := howdah.option('max_payload_bytes');
    v_now    timestamptz := howdah.clock();
    v_ids    uuid[];
    v_types  text[];
    v_large  record;
begin
    if jsonb_typeof(p_jobs) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_jobs must be a JSON array of objects';
    end if;

    select d.job_type, octet_length(d.data::text) as bytes into v_large
    from jsonb_to_recordset(p_jobs) as d (job_type text, data jsonb)
    where octet_length(d.data::text) > v_limit limit 1;
    if found then
        perform howdah.refuse_payload(v_large.job_type, v_large.bytes, v_limit);
    end if;

    with drafts as materialized (
        select coalesce(d.id, howdah.new_id()) as id, d.job_type, coalesce(d.data, '{}') as data,
               coalesce(d.priority, 100) as priority, coalesce(d.max_attempts, 3) as max_attempts,
               coalesce(v_now + d.delay, d.run_at) as run_at, d.trace, d.nth
        from rows from (jsonb_to_recordset(p_jobs) as (
                 id uuid, job_type text, data jsonb, priority int, run_at timestamptz,
                 max_attempts int, delay interval, trace text))
             with ordinality as d (id, job_type, data, priority, run_at, max_attempts, delay, trace, nth)
    ), inserted as (
        insert into howdah.jobs_live (id, job_type, data, priority, run_at, max_attempts, trace, place)
        select id, job_type, data, priority, run_at, max_attempts, trace,
               case when run_at > v_now then null else now() end
        from drafts order by nth
        returning job_type, place
    )
    select (select array_agg(id order by nth) from drafts),
           (select array_agg(distinct job_type) from inserted where place is not null)
    into v_ids, v_types;

    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_ids);
end;
$$;
