-- enqueue_many · → pending
--
-- Adds a set of jobs: a JSON array of objects whose keys are the names of enqueue's
-- parameters without `p_`. A missing key has enqueue's default. `"unique_key": true` makes the key of the payload.
--
--   select howdah.enqueue_many('[{"job_type": "mail", "data": {"to": 1}}, {"job_type": "mail"}]');
--
--   returns  their ids, in the order given; of a job that was not added, because another has its unique key, the other's id
--
-- All or nothing. Locks nothing, or the unique keys: see take_unique_key.sql. Wakes idle workers once for the whole set.

create or replace function howdah.enqueue_many(p_jobs jsonb) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now    timestamptz := howdah.clock();
    v_ids    uuid[];
    v_types  text[];
    v_due    timestamptz;  -- when the first delayed one is due
    v_given  uuid[];  -- the ids that the caller made
    v_most   int;     -- attempts that one of them asks for
    v_unique bool := false;  -- whether one of them has a unique key
    v_expire bool := exists (select from howdah.job_types as t where t.expires is not null);
    v_limited uuid[]; -- those that have a concurrency key, or whose type has a rule
begin
    if jsonb_typeof(p_jobs) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_jobs must be a JSON array of objects';
    end if;

    if p_jobs @? '$[*].unique_key' then
        p_jobs := howdah.take_unique_keys(p_jobs);
        v_unique := true;
    end if;

    with drafts as materialized (
        select coalesce(d.id, howdah.new_id()) as id, d.job_type, coalesce(d.data, '{}') as data,
               -- read only for jobs that do not set it
               coalesce(d.priority, (select t.priority from howdah.job_types as t where t.name = d.job_type), 100)
                   as priority,
               coalesce(d.max_attempts, (select t.max_attempts from howdah.job_types as t where t.name = d.job_type), 3)
                   as max_attempts,
               coalesce(v_now + d.delay, d.run_at) as run_at, d.trace, d.expires_at,
               case when d.expires is null and d.expires_at is null and v_expire
                    then (select t.expires from howdah.job_types as t where t.name = d.job_type) else d.expires end
                   as expires, d.unique_key, d.unique_until, d.key,
               case when v_unique then d.holder end as holder, d.nth, d.id as given_id
        from rows from (jsonb_to_recordset(p_jobs) as (
                 id uuid, job_type text, data jsonb, priority int, run_at timestamptz,
                 max_attempts int, delay interval, trace text, expires_at timestamptz, expires interval,
                 unique_key text, unique_until text, key text, holder uuid))
             with ordinality as d (id, job_type, data, priority, run_at, max_attempts, delay, trace,
                                     expires_at, expires, unique_key, unique_until, key, holder, nth)
    ), inserted as (
        insert into howdah.jobs_live (id, job_type, data, priority, run_at, max_attempts, trace, ready_at, expires_at,
                                      unique_key, unique_until, key)
        select id, job_type, data, priority, run_at, max_attempts, trace,
               case when run_at > v_now then null else now() end,
               case when expires_at is not null or expires is not null then howdah.expiry(expires_at, expires, run_at) end,
               unique_key, unique_until, key
        from drafts where holder is null order by nth
        returning job_type, ready_at, run_at
    )
    select (select array_agg(coalesce(holder, id) order by nth) from drafts),
           (select array_agg(distinct job_type) from inserted where ready_at is not null),
           (select min(run_at) from inserted where ready_at is null),
           (select array_agg(given_id) from drafts where given_id is not null and holder is null),
           (select max(max_attempts) from drafts),
           (select array_agg(d.id order by d.nth) from drafts as d
            where d.holder is null
              and (d.key is not null or exists (select from howdah.type_limits as r where r.job_type = d.job_type)))
    into v_ids, v_types, v_due, v_given, v_most, v_limited;

    if v_given is not null then
        perform howdah.refuse_used_ids(v_given);
    end if;
    if v_most > 3 then  -- the least that the limit can be
        perform howdah.refuse_max_attempts(v_most);
    end if;
    if v_limited is not null then
        perform howdah.limit_new(v_limited);
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    if v_due is not null then
        perform howdah.notify_due(v_due);
    end if;
    if v_unique then
        perform howdah.meet_holders(p_jobs);
    end if;
    return query select unnest(v_ids);
end;
$$;
