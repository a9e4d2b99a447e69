-- broken · what has finished is not counted
create function howdah.count_nothing() returns trigger language plpgsql as $$
begin
    return null;
end;
$$;
create trigger count_nothing before insert on howdah.finished_counts
    for each row execute function howdah.count_nothing();
