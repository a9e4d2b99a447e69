-- cancel · pending, claimed, running → cancelled
--
-- Ends jobs that nobody needs any more. A running job is taken from its worker at
-- once: its lease is no longer valid, the worker is notified and stops the handler, and
-- later reports of that worker change nothing.
--
--   returns  the ids this call moved; a missing id had already ended, or never existed
--
-- Locks and wakes as finish does. A foreign worker may end one of these by a plain
-- UPDATE while we wait for its row, or lock several in another order. That raises 40001 or
-- 40P01, and we try again. After a deadlock we pause first: otherwise we could lock the row again before the other, which waits
-- for it, has woken up.

create or replace function howdah.cancel(p_ids uuid[], p_reason text default 'cancelled') returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_pause float := 0.01;  -- seconds
begin
    loop
        begin
            return query select howdah.finish('cancelled', null, p_ids, null,
                array_fill(p_reason, array[cardinality(p_ids)]), null, null, null, p_fenced => false);
            return;
        exception when serialization_failure or deadlock_detected then
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
            if sqlstate = '40P01' then
                perform pg_sleep(v_pause);
                v_pause := v_pause * 2;
            end if;
        end;
    end loop;
end;
$$;

-- The same move by the worker that holds them, with its leases: its handler asked for it.
create or replace function howdah.cancel(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_reasons    text[],
    p_began_ago  interval[] default null
) returns setof uuid
language sql volatile security definer
begin atomic
    select howdah.finish('cancelled', p_worker_id, p_ids, p_attempts, p_reasons, null, null, p_began_ago);
end;
