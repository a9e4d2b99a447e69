-- async_commit · let this transaction commit without waiting for the disk
--
-- For claims, beats and progress: after a crash, at worst, they are done again. For an enqueue only where the
-- caller waits for the disk in another way: see 30_enqueue/enqueue_now.sql. For complete only where the user chose it.
--
-- It returns what set_config returns: only then can the planner inline it.

create or replace function howdah.async_commit() returns text
language sql volatile
begin atomic
    select set_config('synchronous_commit', 'off', true);
end;

-- wait_for_disk · make the commit of this transaction wait until it, and all commits before it, are on disk
--
-- A transaction that has written nothing commits without waiting. The cheapest thing to write is a
-- sequence that nobody reads: it leaves no dead row and no change in logical replication.

create or replace function howdah.wait_for_disk() returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform setval('howdah.waits_for_disk', 1);
end;
$$;
