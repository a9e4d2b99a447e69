-- notify_followers · tell those who follow these jobs that there is news
--
-- Only watched jobs are announced; for all others this costs nothing. The payload is
-- a list of ids, cut so that each message stays under the 8000 bytes Postgres allows.

create or replace function howdah.notify_followers(p_ids uuid[]) returns void
language sql volatile
begin atomic
    select pg_notify('howdah_news', string_agg(id::text, ' '))
    from (select id, (row_number() over () - 1) / 200 as message from unnest(p_ids) as id) as cut
    group by message;
end;
