-- lock_space · the first number of every advisory lock that howdah takes
--
--   (lock_space, 1)  shared: an idle worker sleeps     exclusive, for a moment: does any worker sleep?
--   (lock_space, 2)  one upkeep at a time
--   (lock_space, 3)  one install at a time
--   (lock_space, 4)  one session at a time compacts measures, or counts the jobs in line
--   (lock_space, 5)  one session at a time makes or drops partitions
--   (lock_space, 6)  one session at a time admits jobs to the line
--   (lock_space + 1, hash of a job type)  one claim at a time searches for jobs: its turn

create or replace function howdah.lock_space() returns int
language sql immutable parallel safe
begin atomic
    select 1752135524;  -- the letters "howd"
end;
