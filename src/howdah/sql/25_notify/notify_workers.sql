-- notify_workers · notify every idle worker that knows one of these types, when the transaction commits
--
-- The payload '' means "search, whatever your types": a payload is limited to 8000 bytes.

create or replace function howdah.notify_workers(p_job_types text[]) returns void
language sql volatile
begin atomic
    select pg_notify('howdah_wake', case when octet_length(array_to_json(p_job_types)::text) < 7900
                                         then array_to_json(p_job_types)::text else '' end);
end;
