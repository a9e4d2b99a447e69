-- async_commit · let this transaction commit without waiting for the disk
--
-- For claims, beats and progress: after a crash they are at worst done again. For an enqueue only where the
-- caller waits for the disk all the same: see 30_enqueue/enqueue_now.sql. For complete only where the user chose it.
--
-- It answers what set_config answers: only then does the planner put that in its place.

create or replace function howdah.async_commit() returns text
language sql volatile
begin atomic
    select set_config('synchronous_commit', 'off', true);
end;

-- wait_for_disk · let this transaction, and all that was committed before it, reach the disk
--
-- A transaction that has written nothing commits without waiting. The least that can be written is a
-- sequence that nobody reads: no dead row, no line in a stream of changes.

create or replace function howdah.wait_for_disk() returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform setval('howdah.waits_for_disk', 1);
end;
$$;
