-- compact_limit_history · add up samples of named limits that are finer than a chart of their age needs
--
-- As compact_measures does, which calls it: what is older than an hour becomes a row per 15 minutes, after a day a row per 2 hours,
-- and after the option keep_measure_history it is deleted.
--
-- Called with (lock_space, 4) held. Wakes nobody.

create or replace function howdah.compact_limit_history() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now             timestamptz := howdah.clock();
    v_deleted_before  timestamptz := v_now - coalesce(howdah.option('keep_measure_history')::interval, '8 days');
    v_step            record;
begin
    for v_step in
        select * from (values
            (interval '15 minutes', v_now - interval '65 minutes'), (interval '2 hours', v_now - interval '25 hours')
        ) as s (step, before)
    loop
        v_step.before := date_bin(v_step.step, v_step.before, '2000-01-01 00:00Z');
        continue when not exists (
            select from howdah.limit_history as h where h.name = '' and h.at < v_step.before and h.step < v_step.step);
        with taken as (
            delete from howdah.limit_history as h where h.at < v_step.before and h.step < v_step.step
            returning date_bin(v_step.step, h.at, '2000-01-01 00:00Z') as bin, h.*
        )
        insert into howdah.limit_history as h (name, at, step, samples, admitted, admitted_sum, waiting, more)
        select t.name, t.bin, v_step.step, sum(t.samples), max(t.admitted), sum(t.admitted_sum), max(t.waiting), bool_or(t.more)
        from taken as t group by t.name, t.bin
        on conflict (name, at, step) do update
        set samples = h.samples + excluded.samples, admitted = greatest(h.admitted, excluded.admitted),
            admitted_sum = h.admitted_sum + excluded.admitted_sum, waiting = greatest(h.waiting, excluded.waiting),
            more = h.more or excluded.more;
    end loop;
    delete from howdah.limit_history as h where h.at < v_deleted_before;
end;
$$;
