-- firing_id · the id of a job that a schedule enqueues: a uuid that holds the time of the firing
--
--   p_for  the time of the firing, in milliseconds
--
-- Plain jobs need no column for it, and every claim has the id already. Like the ids of other jobs it begins with 48 bits of
-- milliseconds: now. Then it has the fixed bits 8c10 (version 8), 48 bits of milliseconds: the time of the firing, and 14 bits of a counter.

create or replace function howdah.firing_id(p_for timestamptz) returns uuid
language sql volatile parallel safe
begin atomic
    select encode(
        int8send((floor(extract(epoch from clock_timestamp()) * 1000)::int8 << 16) | 35856)
        || int8send((-9223372036854775808)
            | (floor(extract(epoch from p_for) * 1000)::int8 << 14)
            | (nextval('howdah.id_counter'::regclass) & 16383)),
        'hex')::uuid;
end;

-- scheduled_for · the time of the firing that enqueued a job; null for a job that no schedule enqueued

create or replace function howdah.scheduled_for(p_id uuid) returns timestamptz
language sql immutable parallel safe
begin atomic
    select case when substr(uuid_send(p_id), 7, 2) = '\x8c10'::bytea
                then to_timestamp(((('x' || encode(substr(uuid_send(p_id), 9, 8), 'hex'))::bit(64)::int8 >> 14)
                                   & 281474976710655) / 1000.0) end;
end;
