-- broken · a completion in a transaction does nothing where its lease is gone, and the effects stay
create or replace function howdah.complete_in_transaction(p_completion jsonb) returns text
language plpgsql volatile as $$
begin
    perform howdah.complete(p_completion ->> 'worker_id', array[(p_completion ->> 'id')::uuid],
                            array[(p_completion ->> 'attempt')::int], array[p_completion -> 'result']);
    return 'completed';
end;
$$;
