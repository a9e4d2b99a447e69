-- step_until · when a sleep ends or a wait times out: after p_lasts; null: never, which is the last instant that a job may have

create or replace function howdah.step_until(p_now timestamptz, p_lasts interval) returns timestamptz
language sql stable parallel safe
begin atomic
    select least(p_now + p_lasts, '9998-12-31 00:00Z');
end;
