-- limits · named limits: how many jobs may run at once, and how many may start per time, over all types that name them
--
-- Only the functions set_limit, remove_limit and register_limits write here.

create table howdah.limits (
    name        text    collate "C" primary key,
    at_once     int,                              -- slots; null: any number
    rate        int,                              -- starts per `per`; null: any number
    per         interval,
    burst       int,                              -- starts at once after a pause
    per_key     bool    not null default false,   -- each key has the whole limit for itself
    counted     bool    not null default false,   -- at_once was lowered: nobody hands a slot over until few enough hold one
    declared    jsonb,                            -- as in the code of the worker that started last; null: set by hand
    changed_at  timestamptz  not null,
    changed_by  text         not null,

    constraint name_is_1_to_100_characters_none_of_them_control_or_colon
        check (length(name) between 1 and 100 and name !~ '[[:cntrl:]:]'),
    constraint at_once_is_at_least_1 check (at_once >= 1),
    constraint a_rate_has_a_time_and_a_burst check ((rate is null) = (per is null) and (rate is null) = (burst is null)),
    constraint rate_is_at_least_1 check (rate >= 1),
    constraint per_is_between_1_ms_and_366_days check (per between '1 millisecond' and '366 days'),
    constraint burst_is_at_least_1 check (burst >= 1),
    constraint a_limit_limits_something check (at_once is not null or rate is not null),
    constraint changed_by_is_at_most_200_characters check (length(changed_by) <= 200)
) with (fillfactor = 50);

-- rate_states · how much of a rate is used up
--
-- Only admit writes here. A row that is missing means: nothing is used up.

create table howdah.rate_states (
    limited_by  text  collate "C" primary key,  -- as in jobs
    used_until  timestamptz  not null,   -- the time up to which jobs that started have used up the rate
    each        interval     not null,   -- the time per start at the last look
    in_line     int          not null    -- how many admitted jobs had not started at the last look
) with (fillfactor = 50);
