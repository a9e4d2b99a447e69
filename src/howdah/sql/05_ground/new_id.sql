-- new_id · a time-ordered uuid (version 7), rising within a session
--
-- Random ids would scatter every insert over the whole index. The layout is
-- 48 bits of milliseconds, 12 bits of the millisecond's fraction, then 20 bits of a
-- counter and 42 random bits: rows of one statement keep the order they were given in.

create or replace function howdah.new_id() returns uuid
language sql volatile parallel safe
begin atomic
    select encode(
        int8send(((micros / 1000) << 16) | (7 << 12) | ((micros % 1000) * 4096 / 1000))
        || int8send((-9223372036854775808)
            | ((nextval('howdah.id_counter'::regclass) & 1048575) << 42)
            | floor(random() * 4398046511104)::int8),
        'hex')::uuid
    from (select (extract(epoch from clock_timestamp()) * 1000000)::int8) as t (micros);
end;
