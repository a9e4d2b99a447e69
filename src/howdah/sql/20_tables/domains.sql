-- domains · which values a name, an instant and a count may have
--
-- Domains instead of CHECKs of the table. Every statement reads and plans a CHECK again (some 10 µs
-- each, where a whole enqueue takes 150) and runs it for every row that it writes. A domain is checked when a
-- value is assigned, and not when the row is updated for another reason.

create domain howdah.job_name as text
    constraint job_type_is_1_to_200_characters_none_of_them_control
    check (length(value) between 1 and 200 and value !~ '[[:cntrl:]]');

create domain howdah.worker_name as text
    constraint worker_id_is_1_to_200_characters
    check (length(value) between 1 and 200);

-- Not every client can read other instants: one such row would break every list that contains it.
create domain howdah.instant as timestamptz
    constraint instants_lie_between_the_years_1_and_9999
    check (value >= '0002-01-01 00:00Z' and value < '9999-01-01 00:00Z');

-- The limit is never below 1,000 bytes, so smaller payloads are accepted without reading the option.
create domain howdah.json_object as jsonb
    constraint data_is_a_json_object
    check (jsonb_typeof(value) = 'object')
    constraint payload_is_within_max_payload_bytes
    check (octet_length(value::text) <= 1000 or howdah.payload_fits(value));

-- What a worker writes: a result, the data of an event. A list of jobs contains many of them.
create domain howdah.json_value as jsonb
    constraint json_value_is_at_most_16_mb_as_text
    check (octet_length(value::text) <= 16777216);

create domain howdah.long_text as text
    constraint text_is_at_most_1_mb
    check (octet_length(value) <= 1048576);

create domain howdah.percent as int
    constraint progress_is_0_to_100
    check (value between 0 and 100);

create domain howdah.attempts_made as int
    constraint attempts_is_not_negative
    check (value >= 0);

create domain howdah.unique_key as text
    constraint unique_key_is_1_to_200_characters
    check (length(value) between 1 and 200);

create domain howdah.unique_until as text
    constraint unique_until_is_started_ended_or_time
    check (value in ('started', 'ended', 'time'));

create domain howdah.attempts_allowed as int
    constraint max_attempts_is_at_least_1
    check (value >= 1);
