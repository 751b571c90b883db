-- Values of busy days by the day: what hours hold of a day that is over, added up. Whoever asks for a year reads 365 rows of a
-- value instead of 8760. The rows of the hours stay, for days of other time zones; who reads takes each day from one of the
-- two. A day counts as added up for as long as it has had no more people since.
CREATE TABLE click_day_value (
  day       date NOT NULL,
  people    integer NOT NULL,
  dimension smallint NOT NULL,
  code      text COLLATE "C" NOT NULL,
  value     text COLLATE "C" NOT NULL,
  PRIMARY KEY (code, dimension, day, value)
);
CREATE TABLE click_day_added (
  day    date NOT NULL,
  people integer NOT NULL,
  code   text COLLATE "C" NOT NULL,
  PRIMARY KEY (code, day)
);

-- A day that leaves can get no more clicks, and its row no longer tells of those that came too late to be added up: then the
-- hours are what counts.
CREATE FUNCTION forget_late_days() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  DELETE FROM click_day_added a USING gone g WHERE a.code = g.code AND a.day = g.day AND a.people <> g.people;
  RETURN NULL;
END
$$;
CREATE TRIGGER forget_late_days AFTER DELETE ON click_day
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_late_days();

-- Adds up to p_limit days of codes that have p_people_min people at least, between p_from and the day before yesterday, and
-- that have changed since or were never added up. Returns how many. Each holds its day as those do who store clicks, and
-- those that are being stored are left for the next time.
CREATE FUNCTION add_up_click_days(p_from date, p_people_min integer, p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  v_day record;
  v_count integer := 0;
BEGIN
  FOR v_day IN
    SELECT d.day, d.code, d.people FROM click_day d
      LEFT JOIN click_day_added a ON a.code = d.code AND a.day = d.day
     WHERE d.day >= p_from AND d.day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1
       AND d.people >= p_people_min AND a.people IS DISTINCT FROM d.people
     ORDER BY d.day, d.code LIMIT p_limit FOR UPDATE OF d SKIP LOCKED
  LOOP
    DELETE FROM click_day_value WHERE code = v_day.code AND dimension BETWEEN 1 AND 5 AND day = v_day.day;
    INSERT INTO click_day_value (code, dimension, day, value, people)
    SELECT code, dimension, v_day.day, value, sum(q0 + q1 + q2 + q3) FROM click_hour_value
     WHERE code = v_day.code AND dimension BETWEEN 1 AND 5
       AND hour >= v_day.day::timestamp AT TIME ZONE 'UTC' AND hour < (v_day.day + 1)::timestamp AT TIME ZONE 'UTC'
     GROUP BY code, dimension, value;
    INSERT INTO click_day_added (code, day, people) VALUES (v_day.code, v_day.day, v_day.people)
        ON CONFLICT (code, day) DO UPDATE SET people = excluded.people;
    v_count := v_count + 1;
  END LOOP;
  RETURN v_count;
END
$$;
