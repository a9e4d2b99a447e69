-- in_utc · an instant as text for people, in UTC: the same for every session

create or replace function howdah.in_utc(p_at timestamptz) returns text
language sql stable parallel safe
begin atomic
    select to_char(p_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS "UTC"');
end;
