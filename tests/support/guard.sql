-- guard · tests only: refuses every move of a job that howdah.moves does not list
--
-- A move is seen in one of two shapes. Within jobs_live it is an UPDATE. Between jobs_live and
-- jobs_finished it is a DELETE here and an INSERT there, whether a verb does it in one statement
-- or PostgreSQL does it for a plain UPDATE that crosses the partitions. So what leaves is noted
-- with its status, and what arrives is matched with the note of its own transaction:
--
--   left live, arrived finished      a move; must be listed
--   left finished, arrived live      a move; must be listed
--   arrived, and had not left        a new job; must be pending
--   left live, and never arrived     a lost job; refused at commit
--   left finished, never arrived     forgotten by prune, or carried to its day by prepare_days
--
-- Which verb is at work is read from the call stack, so `complete` cannot do what only `cancel`
-- may. A plain statement has no verb: it may make any move that some verb may make.

create schema guard;

create table guard.leaving (
    xid     xid8  not null,
    id      uuid  not null,
    status  text  not null
);
create index leaving_id on guard.leaving (id);

create function guard.check_move(p_source text, p_target text, p_id uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_context text;
    v_verb    text;
begin
    get diagnostics v_context = pg_context;
    -- the outermost of the verbs on the stack, which is the last one in the text
    select case f when 'claim_job_batch' then 'claim' when 'claim_run' then 'claim'
                  when 'recover_stale_jobs' then 'recover' else f end
    into v_verb
    from regexp_matches(
             v_context, '^(?:PL/pgSQL function howdah\.|SQL function ")(\w+)', 'gn')
             with ordinality as line (words, nth)
    cross join lateral (select line.words[1]) as function (f)
    where f in ('claim_job_batch', 'claim_run', 'recover_stale_jobs')
       or exists (select from howdah.moves as m where m.verb = f)
    order by nth desc limit 1;

    if not exists (
        select from howdah.moves as m
        where m.source = p_source and m.target = p_target and m.verb = coalesce(v_verb, m.verb)
    ) then
        raise exception using errcode = 'HWG01', message = format(
            'the guard refuses: %s moved job %s from %s to %s',
            coalesce(v_verb, 'a plain statement'), p_id, p_source, p_target);
    end if;
end;
$$;

create function guard.see_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform guard.check_move(old.status, new.status, new.id);
    return null;
end;
$$;

create function guard.see_leaving() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    insert into guard.leaving (xid, id, status) values (pg_current_xact_id(), old.id, old.status);
    return null;
end;
$$;

create function guard.see_arriving() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_source text;
begin
    delete from guard.leaving as l where l.id = new.id and l.xid = pg_current_xact_id()
    returning l.status into v_source;
    if v_source is not null then
        perform guard.check_move(v_source, new.status, new.id);
    elsif new.status <> 'pending' then
        raise exception using errcode = 'HWG01', message = format(
            'the guard refuses: job %s began as %s', new.id, new.status);
    end if;
    return null;
end;
$$;

create function guard.see_loss() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if new.status in ('pending', 'claimed', 'running')
       and exists (select from guard.leaving as l where l.id = new.id and l.xid = new.xid) then
        raise exception using errcode = 'HWG01', message = format(
            'the guard refuses: job %s was %s and is gone', new.id, new.status);
    end if;
    return null;
end;
$$;

create trigger guard_update after update on howdah.jobs_live
    for each row when (old.status is distinct from new.status) execute function guard.see_update();
create trigger guard_leaving after delete on howdah.jobs_live
    for each row execute function guard.see_leaving();
create trigger guard_arriving after insert on howdah.jobs_live
    for each row execute function guard.see_arriving();

create trigger guard_update after update on howdah.jobs_finished
    for each row when (old.status is distinct from new.status) execute function guard.see_update();
create trigger guard_leaving after delete on howdah.jobs_finished
    for each row execute function guard.see_leaving();
create trigger guard_arriving after insert on howdah.jobs_finished
    for each row execute function guard.see_arriving();

create constraint trigger guard_loss after insert on guard.leaving
    deferrable initially deferred
    for each row execute function guard.see_loss();

-- So that the functions above can be triggers of a role that owns nothing.
grant usage on schema guard to public;
