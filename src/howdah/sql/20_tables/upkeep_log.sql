-- upkeep_log · when enter_held last read all live jobs: one row

create table howdah.upkeep_log (
    done_at  timestamptz  not null
);
