-- notify_followers · notify those who follow these jobs that something changed
--
-- Callers pass only jobs that are watched; for all others this costs nothing. The payload is
-- a list of ids, split so that each message stays under the 8000 bytes that PostgreSQL allows.

create or replace function howdah.notify_followers(p_ids uuid[]) returns void
language sql volatile
begin atomic
    select pg_notify('howdah_news', string_agg(id::text, ' '))
    from (select id, (row_number() over () - 1) / 200 as message from unnest(p_ids) as id) as cut
    group by message;
end;
