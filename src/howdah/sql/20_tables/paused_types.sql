-- paused_types · the job types that nobody may claim at present
--
-- Usually empty. Every claim reads it, so a pause holds in all workers at once,
-- foreign ones too. Jobs of a paused type can still be enqueued; they wait in line.

create table howdah.paused_types (
    job_type   text         primary key,
    paused_at  timestamptz  not null,
    paused_by  text         not null,
    reason     text,

    constraint job_type_is_1_to_200_characters_none_of_them_control
        check (length(job_type) between 1 and 200 and job_type !~ '[[:cntrl:]]'),
    constraint paused_by_is_at_most_200_characters check (length(paused_by) <= 200),
    constraint reason_is_at_most_1000_characters   check (length(reason) <= 1000)
);
