-- states · all states and the moves between them
--
-- The verb of a move is the name of the SQL function that makes it. `states.py` and
-- docs/states.md are written from this file by `make states`; the tests refuse every
-- move that is not listed here.

create domain howdah.job_status as text
    constraint status_is_pending_claimed_running_completed_failed_or_cancelled
    check (value in ('pending', 'claimed', 'running', 'completed', 'failed', 'cancelled'));

create table howdah.moves (
    verb    text  not null,
    source  text  not null,
    target  text  not null,
    meaning text  not null,
    primary key (verb, source, target)
);

insert into howdah.moves (verb, source, target, meaning) values
    ('claim',    'pending',   'claimed',   'a worker took it'),
    ('start',    'claimed',   'running',   'its handler runs'),
    ('complete', 'claimed',   'completed', 'it succeeded before it was marked as running'),
    ('complete', 'running',   'completed', 'it succeeded'),
    ('retry',    'claimed',   'pending',   'it failed at once and has attempts left'),
    ('retry',    'running',   'pending',   'it failed and has attempts left'),
    ('retry',    'claimed',   'failed',    'it failed at once and has no attempt left'),
    ('retry',    'running',   'failed',    'it failed and has no attempt left'),
    ('fail',     'claimed',   'failed',    'it failed at once and for good'),
    ('fail',     'running',   'failed',    'it failed for good'),
    ('release',  'claimed',   'pending',   'released before it ran, the attempt not counted'),
    ('release',  'running',   'pending',   'delayed by its handler, the attempt not counted'),
    ('hand_back', 'claimed',  'pending',   'its worker cannot read its payload, the attempt not counted'),
    ('hand_back', 'running',  'pending',   'the same, after it was marked as running'),
    ('hand_back', 'claimed',  'failed',    'no worker can read its payload'),
    ('hand_back', 'running',  'failed',    'the same, after it was marked as running'),
    ('cancel',   'pending',   'cancelled', 'nobody needs it any more'),
    ('cancel',   'claimed',   'cancelled', 'taken from its worker before it ran'),
    ('cancel',   'running',   'cancelled', 'taken from its worker, or cancelled by its handler'),
    ('recover',  'claimed',   'pending',   'its worker went silent'),
    ('recover',  'running',   'pending',   'its worker went silent while it ran'),
    ('recover',  'claimed',   'failed',    'its worker went silent on the last attempt'),
    ('recover',  'running',   'failed',    'its worker went silent on the last attempt, while it ran'),
    ('expire',   'pending',   'cancelled', 'it was not started in time'),
    ('requeue',  'failed',    'pending',   'a person asked for another attempt'),
    ('requeue',  'cancelled', 'pending',   'a person wants it after all');
