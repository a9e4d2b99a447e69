-- fingerprint · the text of an error without the parts that differ from job to job
--
-- The first line; ids, hex strings, quoted text and numbers are replaced by placeholders. Two
-- errors with the same fingerprint are shown as the same error.

create or replace function howdah.fingerprint(p_error text) returns text
language sql immutable parallel safe
begin atomic
    select btrim(
        regexp_replace(
        regexp_replace(
        regexp_replace(
        regexp_replace(
        regexp_replace(
            left(split_part(ltrim(p_error, E' \t\r\n'), E'\n', 1), 500),
            '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', '<id>', 'g'),
            '"[^"]*"|(?<![[:alnum:]])''[^'']*''(?![[:alnum:]])', '<text>', 'g'),
            '\m0[xX][0-9a-fA-F]+\M|\m(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\M', '<hex>', 'g'),
            '[0-9]+([.,:][0-9]+)*', '<n>', 'g'),
            '\s+', ' ', 'g'));
end;
