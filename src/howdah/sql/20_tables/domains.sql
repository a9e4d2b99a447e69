-- domains · what a name and an instant may be
--
-- Domains and not CHECKs of the table: a CHECK is read anew by every statement and tried on every
-- row it writes; a domain is tried when a value is put in, and not when the row moves on.

create domain howdah.job_name as text
    constraint job_type_is_1_to_200_characters_none_of_them_control
    check (length(value) between 1 and 200 and value !~ '[[:cntrl:]]');

create domain howdah.worker_name as text
    constraint worker_id_is_1_to_200_characters
    check (length(value) between 1 and 200);

-- What not every client can read would break those that only come across it.
create domain howdah.instant as timestamptz
    constraint instants_lie_between_the_years_1_and_9999
    check (value >= '0002-01-01 00:00Z' and value < '9999-01-01 00:00Z');
