-- take_unique_keys · take the unique keys of the jobs that enqueue_many is about to add
--
--   p_jobs   as enqueue_many takes them
--   returns  the same, each with an id. Those with a unique key have it as text, and `holder`: the id of the job that holds it,
--            which may be an earlier one of the same call
--
-- Called by enqueue_many. Locks the keys in their order, so two calls wait for each other and never deadlock.

create or replace function howdah.take_unique_keys(p_jobs jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_draft   record;
    v_last    text[];  -- the key and the type of the last draft
    v_changes jsonb[];
    v_ids     uuid[];
    v_now     timestamptz := howdah.clock();
    v_holder  uuid;  -- who has the key of the last draft
begin
    for v_draft in
        with made as materialized (
            select d.nth, d.job_type, coalesce(d.id, howdah.new_id()) as id, d.unique_until as until, d.unique_for as held_for,
                   coalesce(d.on_conflict, 'existing') as on_conflict,
                   case when d.unique_key = 'true' then howdah.payload_key(coalesce(d.data, '{}'))
                        when d.unique_key <> 'false' then d.unique_key #>> '{}' end as key
            from rows from (jsonb_to_recordset(p_jobs) as (
                     id uuid, job_type text, data jsonb, unique_key jsonb, unique_until text, unique_for interval, on_conflict text))
                 with ordinality as d (id, job_type, data, unique_key, unique_until, unique_for, on_conflict, nth)
        )
        select *, bool_or(on_conflict in ('replace', 'debounce')) over (partition by key, job_type) as changes
        from made order by key, job_type, nth
    loop
        v_ids[v_draft.nth] := v_draft.id;
        continue when v_draft.key is null;
        perform howdah.refuse_unique_options(v_draft.key, v_draft.until, v_draft.held_for, v_draft.on_conflict);
        if array[v_draft.key, v_draft.job_type] is distinct from v_last then
            v_holder := howdah.take_unique_key(v_draft.job_type, v_draft.key, v_draft.id, v_now + v_draft.held_for, v_draft.changes);
        end if;
        v_changes[v_draft.nth] := jsonb_build_object(
            'unique_key', v_draft.key, 'holder', v_holder,
            'unique_until', case when v_draft.held_for is not null then 'time' else coalesce(v_draft.until, 'ended') end);
        v_holder := coalesce(v_holder, v_draft.id);
        v_last := array[v_draft.key, v_draft.job_type];
    end loop;
    return (
        -- a `holder` that the caller wrote is dropped
        select jsonb_agg((job.draft - '{unique_key,holder}'::text[]) || jsonb_build_object('id', v_ids[job.nth])
                         || coalesce(v_changes[job.nth], '{}') order by job.nth)
        from jsonb_array_elements(p_jobs) with ordinality as job (draft, nth));
end;
$$;

-- meet_holders · do with the jobs that hold a unique key what each draft of enqueue_many asks for

create or replace function howdah.meet_holders(p_jobs jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_draft   record;
    v_run_at  timestamptz;
    v_expires interval;
begin
    for v_draft in
        select d.* from rows from (jsonb_to_recordset(p_jobs) as (
                 job_type text, data jsonb, unique_key text, on_conflict text, holder uuid, run_at timestamptz, delay interval,
                 expires_at timestamptz, expires interval))
             with ordinality as d (job_type, data, unique_key, on_conflict, holder, run_at, delay, expires_at, expires, nth)
        where d.holder is not null and d.on_conflict <> 'existing'
        order by d.nth
    loop
        v_run_at := coalesce(howdah.clock() + v_draft.delay, v_draft.run_at);
        v_expires := v_draft.expires;
        if v_expires is null and v_draft.expires_at is null then
            v_expires := (select d.expires from howdah.type_defaults(v_draft.job_type) as d);
        end if;
        perform howdah.meet_existing(
            v_draft.on_conflict, v_draft.holder, v_draft.job_type, v_draft.unique_key, coalesce(v_draft.data, '{}'), v_run_at,
            howdah.expiry(v_draft.expires_at, v_expires, v_run_at));
    end loop;
end;
$$;
