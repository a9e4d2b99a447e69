-- wait_for_turn · one claim at a time looks for jobs
--
-- Claims that walk the same line at the same moment meet the same jobs. Those that one has taken the
-- others lock for nothing, and their worker must wait to settle them; and the longer all of this
-- takes, the more there is to walk. So claims take turns in looking; what was found is marked
-- beside the next look.
--
--   p_turn   hash of the first job type asked for: a hint, workers of one make ask alike
--   returns  whether it is our turn now; not after a while either, if somebody looks for long: then
--            we look beside him, which is slower and as right
--
-- Holds (lock_space + 1, p_turn) in the session until claim gives it up, also when it fails: before
-- anything is sent to the client, so that nobody ever waits for one that does not read.

create or replace function howdah.wait_for_turn(p_turn int) returns bool
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
begin
    perform pg_advisory_lock(howdah.lock_space() + 1, p_turn);
    return true;
exception when lock_not_available then
    return false;
end;
$$;
