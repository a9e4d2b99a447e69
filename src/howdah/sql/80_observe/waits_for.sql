-- waits_for · what a pending job waits for, as a word
--
--   p_…      columns of howdah.jobs
--   returns  time, retry, key (a slot of its concurrency key), limit (its named limit), or worker (it is in line);
--            null: it is not pending
--
-- Reads no table. The planner can inline it.

create or replace function howdah.waits_for(
    p_status text, p_admission text, p_ready_at timestamptz, p_attempts int, p_last_error text) returns text
language sql immutable parallel safe
begin atomic
    select case when p_status <> 'pending' then null
                when p_ready_at is not null then 'worker'
                when p_admission = 'slot' then 'key'
                when p_admission = 'limit' then 'limit'
                when p_attempts > 0 and p_last_error is not null then 'retry'
                else 'time' end;
end;
