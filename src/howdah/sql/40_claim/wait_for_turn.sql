-- wait_for_turn · wait until no other claim searches for jobs
--
-- Claims that read the same line at the same time find the same jobs. Each locks jobs that another has just
-- taken, and then that other worker must wait to settle them. The longer this takes, the more dead entries
-- there are to read. So one claim at a time finds and locks jobs: that is its turn. Marking the rows as
-- claimed comes after the turn, while the next claim searches.
--
--   p_turn   hash of the first job type that is asked for; workers with the same code ask for the same types
--   returns  true when it is our turn; false after 1 s: the caller then searches without the turn, which is slower
--            and still correct
--
-- Holds the advisory lock (lock_space + 1, p_turn) in the session until claim releases it, also when claim fails.
-- It is released before anything is sent, so nobody waits for a client that does not read its answer.

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
