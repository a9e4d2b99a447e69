-- claim_job_batch · pending → claimed
--
-- The claim for every client: up to p_batch_size pending, due jobs of these types, highest
-- priority first, oldest first within a priority, in that order. It does not wait for the transaction of
-- another worker and never returns the same job twice. It reads the whole line of each type;
-- workers that know their last position call `claim` with ranges.
--
-- Locks the rows it takes (for update skip locked), in its turn as `claim` does. Wakes nobody.

create or replace function howdah.claim_job_batch(
    p_worker_id  text,
    p_job_types  text[],
    p_batch_size int default 10
) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types text[] := array(select distinct t from unnest(p_job_types) as t where t is not null);
    v_k     int[]  := array[cardinality(v_types)];
begin
    if p_job_types is null then
        raise exception using errcode = '22023', message = 'p_job_types must name the job types to claim';
    end if;
    loop
        begin
            return query select * from howdah.claim(
                p_worker_id, p_batch_size, v_types,
                array_fill((-2147483648)::int, v_k),
                array_fill('-infinity'::timestamptz, v_k),
                array_fill('00000000-0000-0000-0000-000000000000'::uuid, v_k),
                array_fill(2147483647, v_k),
                p_foreign => true);
            return;
        exception when serialization_failure then  -- a plain UPDATE moved a row to jobs_finished
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
        end;
    end loop;
end;
$$;
