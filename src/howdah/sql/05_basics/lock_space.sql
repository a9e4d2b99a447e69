-- lock_space · the first number of every advisory lock howdah takes
--
--   (lock_space, 1)  shared: an idle worker sleeps     exclusive, for a moment: is anybody asleep?
--   (lock_space, 2)  one upkeep at a time
--   (lock_space, 3)  one install at a time
--   (lock_space, 4)  one at a time folds measures, or counts who waits
--   (lock_space, 5)  one at a time makes or drops days
--   (lock_space + 1, hash of a job type)  one claim at a time looks for jobs

create or replace function howdah.lock_space() returns int
language sql immutable parallel safe
begin atomic
    select 1752135524;  -- the letters "howd"
end;
