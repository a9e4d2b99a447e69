-- payload_key · a unique key made of a payload: equal for equal JSON, whatever the order of its keys
--
--   select howdah.enqueue('mail', '{"to": 1}', p_unique_key => howdah.payload_key('{"to": 1}'));
--
-- Numbers that are written differently (1 and 1.0) are different. Locks nothing.

create or replace function howdah.payload_key(p_data jsonb) returns text
language sql immutable parallel safe
begin atomic
    select 'payload ' || left(encode(sha256(convert_to(p_data::text, 'UTF8')), 'hex'), 40);
end;
