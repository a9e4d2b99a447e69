-- new_id · a time-ordered uuid (version 7), rising within a session
--
-- Random ids would scatter every insert over the whole index. The layout is
-- 48 bits of milliseconds, 32 bits of a counter, 42 random bits: rows of one statement keep
-- the order they were given in. One expression without a FROM, so that the planner can
-- inline it into the INSERT instead of calling a function per row.

create or replace function howdah.new_id() returns uuid
language sql volatile parallel safe
begin atomic
    select encode(
        int8send((floor(extract(epoch from clock_timestamp()) * 1000)::int8 << 16) | (7 << 12)
            | ((nextval('howdah.id_counter'::regclass) >> 20) & 4095))
        || int8send((-9223372036854775808)
            | ((currval('howdah.id_counter'::regclass) & 1048575) << 42)
            | floor(random() * 4398046511104)::int8),
        'hex')::uuid;
end;

-- is_new_id · whether an id was made within p_seconds of now, by the time in the id
--
-- One expression without a FROM, for the same reason. Null for null.

create or replace function howdah.is_new_id(p_id uuid, p_seconds int) returns bool
language sql volatile parallel safe
begin atomic
    select abs(('x' || encode(substr(uuid_send(p_id), 1, 6), 'hex'))::bit(48)::int8
               - extract(epoch from clock_timestamp()) * 1000) <= p_seconds * 1000;
end;

-- is_fresh_id · whether an id was made in the current 65.536 seconds: both times have the same first four bytes
--
-- Half the work of is_new_id, for the calls that enqueue one job. Null for null.

create or replace function howdah.is_fresh_id(p_id uuid) returns bool
language sql volatile parallel safe
begin atomic
    select substr(uuid_send(p_id), 1, 4) = int4send(floor(date_part('epoch', clock_timestamp()) / 65.536)::int);
end;
