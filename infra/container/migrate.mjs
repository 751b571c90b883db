// The one-shot step before the services: roles and passwords, migrations, rights, and the first admin key. Every part
// may be run again, and is at each start; it ends with 0 only when all of them are done.
import { spawnSync } from "node:child_process";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const postgres = createRequire(new URL("../../packages/db/package.json", import.meta.url))("postgres");

const SECRETS = "/run/linkfence";
const ADMIN_KEY = "/run/linkfence-admin/admin-key";
const CONNECT_TIMEOUT_S = 10;
/** PostgreSQL's own default; its passwords are random, so more rounds would protect nothing. */
const SCRAM_ROUNDS = 4096;

const url = (name) => readFileSync(`${SECRETS}/${name}-url`, "utf8");

await withDatabase("main-superuser", (sql) => prepare(sql, ["main-owner", "write", "redirect"]));
await withDatabase("stats-superuser", (sql) => prepare(sql, ["stats-owner", "ingest"]));
run("packages/db/dist/migrate-main.js", [], {
  DATABASE_URL: url("main-owner"),
  STATS_DATABASE_URL: url("stats-owner"),
});
await withDatabase("main-owner", (sql) => runFile(sql, "grants-main.sql"));
await withDatabase("stats-owner", (sql) => runFile(sql, "grants-stats.sql"));
run("services/write/dist/admin-key.js", ["--file", ADMIN_KEY], { DATABASE_URL_FILE: `${SECRETS}/write-url` });
process.stdout.write("roles, migrations, rights and the first admin key are in place\n");

async function withDatabase(name, work) {
  const sql = postgres(url(name), { max: 1, connect_timeout: CONNECT_TIMEOUT_S, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Roles and their passwords. This server is ours alone, so that nobody needs the databases it came with either. */
async function prepare(sql, names) {
  await runFile(sql, "roles.sql");
  await sql`REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC`;
  for (const name of names) {
    const { username, password } = new URL(url(name));
    await sql.unsafe(`ALTER ROLE ${username} PASSWORD '${scramVerifier(password)}'`);
  }
}

/** The simple protocol takes the whole file, and runs it as one transaction. */
function runFile(sql, name) {
  return sql.unsafe(readFileSync(new URL(`../postgres/${name}`, import.meta.url), "utf8")).simple();
}

/**
 * What the server stores of a password (RFC 5803 section 3, RFC 7677), computed here so that no password is ever part of
 * a statement, which a server may log.
 */
function scramVerifier(password) {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, SCRAM_ROUNDS, 32, "sha256");
  const hmac = (text) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
  return `SCRAM-SHA-256$${SCRAM_ROUNDS}:${salt.toString("base64")}$${storedKey}:${hmac("Server Key").toString("base64")}`;
}

function run(program, args, env) {
  const { status, error } = spawnSync(process.execPath, [program, ...args], {
    stdio: "inherit",
    env: { PATH: process.env.PATH, NODE_ENV: "production", ...env },
  });
  if (error) throw error;
  if (status !== 0) {
    process.stderr.write(`${program} ended with ${status}\n`);
    process.exit(1);
  }
}
