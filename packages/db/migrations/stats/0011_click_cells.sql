-- What an hour's people came from and with stands in the row of the hour, as text, and no longer in a row for each value: a
-- click of a link that is seldom followed writes one row where it wrote six.
-- `recent` has a line for each person: the quarter and the five values. When these are longer than what stands in `cells`,
-- they are added up in there: a line for each dimension and value, with its four counters. So a line is read again as often
-- as the text doubles, and no more; and a busy hour's cells, which lie elsewhere once they are long, stay where they are.
-- Fields are parted by tabs and end with the line. A value has three characters written in two: tab, newline, backslash.
ALTER TABLE click_hour
  ADD COLUMN recent text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN cells  text COLLATE "C" NOT NULL DEFAULT '';

CREATE FUNCTION write_cell_value(value text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT replace(replace(replace(value, E'\\', E'\\b'), E'\t', E'\\t'), E'\n', E'\\n')
$$;

-- Adds up both, with values as they are written. Equal lines are counted first, as each is five values.
CREATE FUNCTION sum_cells(cells text, recent text)
RETURNS TABLE (d text, v text, q0 bigint, q1 bigint, q2 bigint, q3 bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 50 AS $$
BEGIN
  RETURN QUERY
    SELECT c.d, c.v, sum(c.n0)::bigint, sum(c.n1)::bigint, sum(c.n2)::bigint, sum(c.n3)::bigint
      FROM (SELECT field[1] AS d, field[6] AS v, field[2]::integer AS n0, field[3]::integer AS n1,
                   field[4]::integer AS n2, field[5]::integer AS n3
              FROM string_to_table(cells, E'\n') AS line CROSS JOIN LATERAL string_to_array(line, E'\t') AS field
             WHERE line <> ''
             UNION ALL
            SELECT n::text, field[n + 1], CASE WHEN field[1] = '0' THEN times ELSE 0 END,
                   CASE WHEN field[1] = '1' THEN times ELSE 0 END, CASE WHEN field[1] = '2' THEN times ELSE 0 END,
                   CASE WHEN field[1] = '3' THEN times ELSE 0 END
              FROM (SELECT string_to_array(line, E'\t') AS field, count(*)::integer AS times
                      FROM string_to_table(recent, E'\n') AS line WHERE line <> '' GROUP BY line) AS lines
             CROSS JOIN generate_series(1, 5) AS n) AS c
     GROUP BY c.d, c.v;
END
$$;

-- What the two say. Only the texts are looked at, by whoever may read them.
CREATE FUNCTION read_cells(cells text, recent text)
RETURNS TABLE (dimension smallint, value text, q0 integer, q1 integer, q2 integer, q3 integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 50 AS $$
  SELECT d::smallint,
         CASE WHEN strpos(v, E'\\') = 0 THEN v
              ELSE replace(replace(replace(v, E'\\n', E'\n'), E'\\t', E'\t'), E'\\b', E'\\') END COLLATE "C",
         q0::integer, q1::integer, q2::integer, q3::integer
    FROM sum_cells(cells, recent)
$$;

CREATE FUNCTION add_up_cells(cells text, recent text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (SELECT coalesce(string_agg(d || E'\t' || q0 || E'\t' || q1 || E'\t' || q2 || E'\t' || q3 || E'\t' || v || E'\n', ''), '')
            FROM sum_cells(cells, recent));
END
$$;

-- The same, and values that are not known become `other`.
CREATE FUNCTION bound_cells(cells text, recent text, known jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(string_agg(concat_ws(E'\t', dimension, q0, q1, q2, q3, write_cell_value(name)) || E'\n', ''), '')
    FROM (SELECT dimension, name, sum(q0) AS q0, sum(q1) AS q1, sum(q2) AS q2, sum(q3) AS q3
            FROM (SELECT c.*, CASE WHEN known ? (dimension || value) THEN value ELSE 'other' END AS name
                    FROM read_cells(cells, recent) AS c) AS named
           GROUP BY dimension, name) AS sums
$$;

-- What is there already moves.
UPDATE click_hour h SET cells = v.cells
  FROM (SELECT code, hour,
               string_agg(concat_ws(E'\t', dimension, q0, q1, q2, q3, write_cell_value(value)), E'\n'
                          ORDER BY dimension, value) || E'\n' AS cells
          FROM click_hour_value GROUP BY code, hour) AS v
 WHERE h.code = v.code AND h.hour = v.hour;
DROP TABLE click_hour_value;
CREATE VIEW click_hour_value AS
  SELECT h.code, h.hour, v.dimension, v.value, v.q0, v.q1, v.q2, v.q3
    FROM click_hour h CROSS JOIN LATERAL read_cells(h.cells, h.recent) AS v;

-- Of a day that has more people than it may have values, click_day knows the values that are named: keys of an object, each
-- with its dimension before it, and how many each dimension has. All that stands in the hours of such a day is one of them
-- or `other`. Nothing is known of a day before that, and none of its values is one too many.
ALTER TABLE click_day DROP COLUMN value_bounds, ADD COLUMN known jsonb, ADD COLUMN known_counts integer[];
DROP FUNCTION bound_click_values(text, date, smallint, timestamptz[], text[], integer);
