-- Imports: a file of links that is read as it comes, and can be sent again after whatever broke it off. How far an import
-- has come is written in the transaction that creates the links up to there, so there is no moment at which one of them
-- is there without the other.

-- `bytes`, `digest` (SHA-256 of so many first bytes of the file) and `last_line` say up to where its lines are decided.
-- `attempt` counts the uploads: who does not have the latest one may write nothing. A process that works at an import
-- holds the advisory lock hashtextextended('import ' || id, 0); a row that is not finished and not locked is broken off.
CREATE TABLE import (
  id              uuid PRIMARY KEY,
  owner           text NOT NULL CHECK (owner <> ''),
  key             text CHECK (key ~ '^[!-~]{1,255}$'),
  created_by      text NOT NULL,
  mapping         text NOT NULL CHECK (mapping IN ('linkfence', 'yourls', 'shlink', 'kutt', 'bitly')),
  format          text NOT NULL CHECK (format IN ('csv', 'jsonl')),
  dry_run         boolean NOT NULL,
  columns         text[],
  ignored_columns text[] NOT NULL DEFAULT '{}' CHECK (cardinality(ignored_columns) <= 100),
  attempt         int NOT NULL DEFAULT 0,
  bytes           bigint NOT NULL DEFAULT 0,
  digest          bytea NOT NULL DEFAULT sha256('') CHECK (octet_length(digest) = 32),
  last_line       bigint NOT NULL DEFAULT 0,
  lines           bigint NOT NULL DEFAULT 0,
  created         bigint NOT NULL DEFAULT 0,
  already         bigint NOT NULL DEFAULT 0,
  refused         bigint NOT NULL DEFAULT 0,
  errors_kept     bigint NOT NULL DEFAULT 0 CHECK (errors_kept <= 10000),
  started_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at     timestamptz,
  UNIQUE (owner, key),
  CHECK (lines = created + already + refused),
  CHECK ((columns IS NULL) = (format = 'jsonl'))
);
CREATE INDEX import_listing ON import (owner COLLATE "C", started_at DESC, id DESC);

-- Why a line was refused. The first ten thousand of an import are kept; the others are only counted.
CREATE TABLE import_error (
  import_id  uuid NOT NULL REFERENCES import (id),
  line       bigint NOT NULL,
  field      text NOT NULL,
  rule       text NOT NULL,
  code       text NOT NULL,
  detail     text NOT NULL CHECK (char_length(detail) <= 1000),
  PRIMARY KEY (import_id, line)
);

-- Aliases that earlier lines of a trial run would have taken; removed when it is finished.
CREATE TABLE import_alias (
  import_id  uuid NOT NULL REFERENCES import (id),
  alias      text COLLATE "C" NOT NULL,
  target     text NOT NULL,
  PRIMARY KEY (import_id, alias)
);

-- Which line of which import a link comes from. The index finds the links of an import in the order of their lines, and
-- is the last defence against creating a line twice.
ALTER TABLE link ADD COLUMN import_id uuid, ADD COLUMN import_line bigint,
  ADD CHECK ((import_id IS NULL) = (import_line IS NULL));
CREATE UNIQUE INDEX link_import ON link (import_id, import_line) WHERE import_id IS NOT NULL;
