-- peek_best · the first of several stretches of line, taken together
--
-- Looks, without locking, at the next jobs of each stretch, up to a share. The best of what was seen
-- are the best of all, but for a stretch whose share ended before the last of them: more that are
-- better may stand there. Only such stretches are looked at again, from where their share ended and
-- for twice as many, until there is none. So the cost follows the stretches and the jobs asked
-- for: neither how many wait nor how they are spread makes it long.
--
--   p_limit        how many at most
--   p_job_types, p_after_ranks, p_after_ready_at, p_after_ids, p_until_ranks   the stretches: see claim.sql
--   p_now          jobs due later are left out
--   o_ctids        where the best jobs lie, in claim order
--   o_rank, o_ready_at, o_id   the last of them; null if there are fewer than asked for
--
-- Runs inside claim, with its rights and its pinned plans.

create or replace function howdah.peek_best(
    p_limit         int,
    p_job_types     text[],
    p_after_ranks   int[],
    p_after_ready_at  timestamptz[],
    p_after_ids     uuid[],
    p_until_ranks   int[],
    p_now           timestamptz,
    out o_ctids     tid[],
    out o_rank      int,
    out o_ready_at     timestamptz,
    out o_id        uuid
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_share  int := greatest(1, 2 * p_limit / greatest(1, cardinality(p_job_types)));
    -- the stretches to look at
    v_types  text[]        := p_job_types;
    v_ranks  int[]         := p_after_ranks;
    v_ready_ats timestamptz[] := p_after_ready_at;
    v_ids    uuid[]        := p_after_ids;
    v_untils int[]         := p_until_ranks;
    -- the best jobs of earlier looks, beside o_ctids
    v_best_ranks  int[];
    v_best_ready_ats timestamptz[];
    v_best_ids    uuid[];
begin
    loop
        with seen as materialized (
            select stretch.nth, next.*
            from unnest(v_types, v_ranks, v_ready_ats, v_ids, v_untils) with ordinality
                     as stretch (job_type, rank, ready_at, id, until, nth)
            cross join lateral (
                select line.*, row_number() over () as step
                from (
                    select ~j.priority as rank, j.ready_at, j.id, j.ctid
                    from howdah.jobs_live as j
                    where j.job_type = stretch.job_type and j.worker_id is null and j.ready_at is not null
                      and (~j.priority, j.ready_at, j.id) > (stretch.rank, stretch.ready_at, stretch.id)
                      and ~j.priority <= stretch.until
                      and (j.run_at is null or j.run_at <= p_now)
                    order by ~j.priority, j.ready_at, j.id
                    limit v_share
                ) as line
            ) as next
        ), best as materialized (
            select rank, ready_at, id, ctid from seen
            union all
            select * from unnest(v_best_ranks, v_best_ready_ats, v_best_ids, o_ctids)
            order by 1, 2, 3
            limit p_limit
        ), last as (
            select rank, ready_at, id from best offset p_limit - 1
        ), open as (
            select * from seen
            where step = v_share
              and ((select id from last) is null
                   or (rank, ready_at, id) < ((select rank from last), (select ready_at from last), (select id from last)))
        )
        select array(select ctid from best), (select rank from last), (select ready_at from last), (select id from last),
               open.*,
               case when open.job_types is not null then array(select rank from best) end,
               case when open.job_types is not null then array(select ready_at from best) end,
               case when open.job_types is not null then array(select id from best) end
        into o_ctids, o_rank, o_ready_at, o_id,
             v_types, v_ranks, v_ready_ats, v_ids, v_untils,
             v_best_ranks, v_best_ready_ats, v_best_ids
        from (
            select array_agg(v_types[nth]) as job_types, array_agg(rank), array_agg(ready_at), array_agg(id),
                   array_agg(v_untils[nth])
            from open
        ) as open;

        exit when v_types is null;
        v_share := least(2 * v_share, p_limit);
    end loop;
end;
$$;
