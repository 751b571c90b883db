-- Clicks, one row each. click_id is a UUIDv7 whose time is the request's: the range partitions follow its time prefix,
-- so that the primary key stays click_id alone and old clicks leave by dropping whole partitions.
CREATE TABLE click (
  click_id      uuid PRIMARY KEY,
  code          text NOT NULL CHECK (char_length(code) BETWEEN 1 AND 64),
  link_version  bigint NOT NULL,
  clicked_at    timestamptz NOT NULL,
  referrer_host text CHECK (char_length(referrer_host) <= 255),
  user_agent    text CHECK (char_length(user_agent) <= 512),
  received_at   timestamptz NOT NULL DEFAULT now()
) PARTITION BY RANGE (click_id);
CREATE TABLE click_default PARTITION OF click DEFAULT;
CREATE INDEX click_code ON click (code, click_id);
