-- options · settings of the whole queue, for every client

create table howdah.options (
    name     text  primary key,
    value    text  not null,
    meaning  text  not null,
    constraint a_payload_may_have_1000_bytes_at_least check (name <> 'max_payload_bytes' or value::int >= 1000),
    constraint a_job_may_have_3_attempts_at_least     check (name <> 'max_attempts_limit' or value::int >= 3),
    constraint a_job_may_lose_1_to_20_workers         check (name <> 'max_lost_workers' or value::int between 1 and 20),
    constraint a_job_may_wait_to_be_read_for_no_less_than_nothing
        check (name <> 'fail_unread_after' or value::interval >= '0')
);

insert into howdah.options (name, value, meaning) values
    ('keep_finished',     '7 days', 'how long finished jobs are kept, by whole days'),
    ('keep_events',       '7 days', 'how long events of jobs are kept, by whole days'),
    ('keep_measures',     '2 hours', 'how long measures are kept by the minute'),
    ('keep_measure_history', '8 days', 'how long measures are kept by two hours, for charts'),
    ('max_payload_bytes', '262144', 'the largest payload a job may carry'),
    ('max_attempts_limit', '1000', 'the most attempts a job may ask for'),
    ('max_lost_workers', '5', 'a job fails once it has lost so many workers in a row'),
    ('fail_unread_after', '1 day', 'a job fails when no worker could read its payload for so long');
