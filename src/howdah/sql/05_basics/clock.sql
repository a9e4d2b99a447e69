-- clock · the one clock of the engine
--
-- Everything that waits, expires or becomes stale uses this clock and never a client's.
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
