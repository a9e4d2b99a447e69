-- broken · the completion is written in another transaction than the effects
create or replace function howdah.complete_in_transaction(p_completion jsonb) returns text
language plpgsql volatile as $$
begin
    update story_effects.effects set xid = '3' where xid = pg_current_xact_id();
    perform howdah.complete(p_completion ->> 'worker_id', array[(p_completion ->> 'id')::uuid],
                            array[(p_completion ->> 'attempt')::int], array[p_completion -> 'result']);
    return 'completed';
end;
$$;
