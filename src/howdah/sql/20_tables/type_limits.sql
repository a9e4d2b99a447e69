-- type_limits · how many jobs of a type may run at once per concurrency key, and under which limit
--
-- One row per type that has a rule. A key of a type without a rule has one slot. Only the functions set_type_limit and
-- register_limits, and fit_fair_widths for fair types, write here.

create table howdah.type_limits (
    job_type    howdah.job_name  primary key,
    at_once     int,                              -- slots per key; null: keys are not limited
    ordered     bool    not null default false,   -- one after the other, in the order of enqueueing
    fair        bool    not null default false,   -- keys take turns: at_once follows the workers, see fit_fair_widths
    limit_name  text    collate "C",              -- the limit in howdah.limits that its jobs need too
    counted     bool    not null default false,   -- at_once was lowered: a hand-over counts
    declared    jsonb,                            -- the rule in the code of the worker that started last; null: set by hand
    changed_at  timestamptz  not null,
    changed_by  text         not null,

    constraint at_once_is_at_least_1 check (at_once >= 1),
    constraint an_ordered_key_has_one_slot check (not ordered or at_once = 1),
    constraint a_fair_key_has_a_width_and_no_order check (not fair or (at_once is not null and not ordered)),
    constraint changed_by_is_at_most_200_characters check (length(changed_by) <= 200)
) with (fillfactor = 50);
