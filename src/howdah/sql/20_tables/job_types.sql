-- job_types · the job types that workers have registered
--
-- One row per type, written when a worker starts: the last start wins. A running worker
-- changes only `last_seen_at`, so two versions of the code do not overwrite each other again and again.
-- Only howdah.register_job_types writes here. The texts come from workers: whoever displays them must
-- treat them as untrusted input.

create table howdah.job_types (
    name           howdah.job_name          primary key,
    priority       int                      not null,
    max_attempts   howdah.attempts_allowed  not null,
    queue          text                     not null default 'default',   -- a name for a set of types, for dedicated workers
    timeout        interval,                            -- null: none
    expires        interval,                            -- a job is cancelled if it has not started so long after it was due; null: never
    run            text                     not null,   -- async, thread or process
    parameters     jsonb                    not null,   -- [{"name": …, "type": …, "required": …}]
    signature      text                     not null,   -- a fingerprint of the parameters and their types
    label          text,                                -- how one job is named in lists: "{order_id}"
    worker_id      howdah.worker_name       not null,   -- whose start wrote this last
    version        text                     not null,   -- the version of howdah in that worker
    first_seen_at  timestamptz              not null,
    registered_at  timestamptz              not null,
    last_seen_at   timestamptz              not null,

    constraint queue_is_1_to_200_characters_none_of_them_control_or_comma
        check (length(queue) between 1 and 200 and queue !~ '[[:cntrl:],]' and queue = btrim(queue)),
    constraint timeout_is_longer_than_nothing check (timeout > '0'),
    constraint expires_is_longer_than_nothing check (expires > '0'),
    constraint run_is_at_most_20_characters check (length(run) between 1 and 20),
    constraint parameters_are_an_array_of_at_most_64_kb
        check (jsonb_typeof(parameters) = 'array' and octet_length(parameters::text) <= 65536),
    constraint signature_is_1_to_100_characters check (length(signature) between 1 and 100),
    constraint label_is_1_to_200_characters_none_of_them_control
        check (length(label) between 1 and 200 and label !~ '[[:cntrl:]]'),
    constraint version_is_at_most_100_characters check (length(version) <= 100)
) with (fillfactor = 50);
