-- watch · ask to be told when these jobs change, and hear how they stand
--
-- Marks live jobs as watched, so that their changes are announced on howdah_news, and
-- returns the jobs as they are now. A job that has ended comes back as it ended.
--
-- Locks live rows in id order; touches no indexed column. Wakes nobody. A plain UPDATE that
-- ends one of these jobs while we wait for its row raises 40001: we look again.

create or replace function howdah.watch(p_ids uuid[]) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    loop
        begin
            update howdah.jobs_live as j set watched = true where j.id = any (p_ids) and not j.watched;
            exit;
        exception when serialization_failure then
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
        end;
    end loop;
    return query select * from howdah.jobs as j where j.id = any (p_ids);
end;
$$;
