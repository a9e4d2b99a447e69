-- option · the value of a queue-wide option

create or replace function howdah.option(p_name text) returns text
language sql stable security definer
begin atomic
    select value from howdah.options where name = p_name;
end;
