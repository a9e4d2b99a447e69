-- clock · the one clock of the engine
--
-- Everything that waits, expires or goes stale asks this clock and never a client's.
-- A test moves it for its own session: `set howdah.clock_offset = '1 hour'`.

create or replace function howdah.clock() returns timestamptz
language sql stable parallel safe
begin atomic
    select now() + coalesce(nullif(current_setting('howdah.clock_offset', true), ''), '0')::interval;
end;

-- today · the day a job finishes or an event happens, in UTC, so that a day's
-- partition means the same to every session whatever its time zone.
create or replace function howdah.today() returns date
language sql stable parallel safe
begin atomic
    select (howdah.clock() at time zone 'utc')::date;
end;

-- relaxed · let this transaction commit without waiting for the disk
--
-- For claims, beats and progress: after a crash they are at worst done again. For an enqueue only where the
-- caller waits for the disk all the same: see 30_enqueue/hand_over.sql. For complete only where the user chose it.
--
-- It answers what set_config answers, so that the planner puts that in its place.
create or replace function howdah.relaxed() returns text
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
