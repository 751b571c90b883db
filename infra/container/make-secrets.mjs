// Makes every password of the deployment, once. Each is kept in the volume of the migrations, and what a process needs
// of them is derived into a volume that only this process mounts. Running it again changes nothing, and completes a
// first run that was cut off anywhere. Files belong to root and are readable by the reader's group alone (0440).
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/secrets";
const ADMIN_KEY_FOLDER = join(ROOT, "admin-key");
/** 192 bits; base64url needs no escaping in a URL or a header field. */
const PASSWORD_BYTES = 24;

/** The group of each reader, as compose.yaml runs it. 999 is the group of the public PostgreSQL image. */
const GROUPS = {
  "main-db": 999,
  "stats-db": 999,
  write: 10001,
  redirect: 10002,
  "click-ingest": 10003,
  migrate: 10004,
};

for (const [reader, group] of Object.entries(GROUPS)) {
  chownSync(join(ROOT, reader), 0, group);
  chmodSync(join(ROOT, reader), 0o750);
}
// The migrations write the first admin key, once it exists.
if (statSync(ADMIN_KEY_FOLDER).uid !== GROUPS.migrate) {
  chmodSync(ADMIN_KEY_FOLDER, 0o700);
  chownSync(ADMIN_KEY_FOLDER, GROUPS.migrate, GROUPS.migrate);
}

const main = (role) => `postgres://${role}:${secret(`main-${role}`)}@main-db:5432/linkfence`;
const stats = (role) => `postgres://${role}:${secret(`stats-${role}`)}@stats-db:5432/linkfence_stats`;

put("main-db", "superuser-password", secret("main-postgres"));
put("stats-db", "superuser-password", secret("stats-postgres"));
put("migrate", "main-superuser-url", main("postgres"));
put("migrate", "stats-superuser-url", stats("postgres"));
put("migrate", "main-owner-url", main("linkfence_owner"));
put("migrate", "stats-owner-url", stats("linkfence_owner"));
put("migrate", "write-url", main("linkfence_write"));
put("migrate", "redirect-url", main("linkfence_redirect"));
put("migrate", "ingest-url", stats("linkfence_ingest"));
put("write", "database-url", main("linkfence_write"));
put("redirect", "database-url", main("linkfence_redirect"));
put("click-ingest", "database-url", stats("linkfence_ingest"));
for (const reader of ["write", "redirect", "click-ingest"]) put(reader, "ingest-secret", secret("click-ingest"));

/** The secret of this name; made and stored when there is none yet. */
function secret(name) {
  const path = join(ROOT, "migrate", `secret-${name}`);
  if (!existsSync(path)) put("migrate", `secret-${name}`, randomBytes(PASSWORD_BYTES).toString("base64url"));
  return readFileSync(path, "utf8");
}

/** Writes a file whole or not at all; a file that holds the text already is left alone. */
function put(reader, name, text) {
  const path = join(ROOT, reader, name);
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  const draft = `${path}.draft`;
  writeFileSync(draft, text, { mode: 0o440, flush: true });
  chownSync(draft, 0, GROUPS[reader]);
  chmodSync(draft, 0o440);
  renameSync(draft, path);
}
