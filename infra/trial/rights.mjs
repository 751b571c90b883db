// What each container may do, asked from inside: its user and capabilities, and its role in the database.
import { docker } from "./engine.mjs";
import { check } from "./report.mjs";

const DENIED = "42501"; // insufficient_privilege, PostgreSQL manual, appendix A
const ALLOWED = "ok";

/** Runs in the container: sends each statement with the service's own credentials and tells the SQLSTATE of each. */
const PROBE = `
const { createRequire } = require("node:module");
const postgres = createRequire("/app/packages/db/package.json")("postgres");
const { readFileSync } = require("node:fs");
const sql = postgres(readFileSync("/run/linkfence/database-url", "utf8"), { max: 1, onnotice: () => {} });
(async () => {
  const answers = [];
  for (const text of JSON.parse(readFileSync(0, "utf8"))) {
    answers.push(await sql.begin((tx) => tx.unsafe(text)).then(() => "ok", (error) => error.code ?? error.message));
  }
  await sql.end();
  console.log(JSON.stringify(answers));
})();`;

const STATEMENTS = {
  redirect: [
    ["read a link through its view", "SELECT target FROM redirect_link LIMIT 1", ALLOWED],
    ["read the table of links", "SELECT target FROM link LIMIT 1", DENIED],
    ["read API keys", "SELECT secret_hash FROM api_key", DENIED],
    ["revoke a link", "SELECT revoke_links('{x}', 'admin', 'x')", DENIED],
    ["read an owner's changes", "SELECT seq FROM owner_changes('x', 0, 1, 1)", DENIED],
    ["read the registry", "SELECT id FROM redirect_instance", DENIED],
    ["write the registry past its functions", "DELETE FROM redirect_instance", DENIED],
    ["settle an epoch", "INSERT INTO settled_epoch (epoch) VALUES ('x')", DENIED],
    ["make a table", "CREATE TABLE mine (x int)", DENIED],
    ["make a temporary table", "CREATE TEMP TABLE link (x int)", DENIED],
  ],
  write: [
    ["read a link", "SELECT target FROM link LIMIT 1", ALLOWED],
    ["edit a title", "UPDATE link SET title = title, tags = tags, note = note", ALLOWED],
    ["list by tag", "SELECT code FROM link_tag LIMIT 1", ALLOWED],
    ["write the index of tags past its trigger", "DELETE FROM link_tag", DENIED],
    ["read the secrets of cursors", "SELECT secret FROM cursor_key", ALLOWED],
    ["change the secrets of cursors", "DELETE FROM cursor_key", DENIED],
    ["look up a key", "SELECT secret_hash FROM api_key LIMIT 1", ALLOWED],
    ["note that keys were used", "SELECT touch_api_keys('{}')", ALLOWED],
    ["revoke a key by the function", "SELECT revoke_api_key('x', NULL, 'x')", ALLOWED],
    ["revoke a key past the function", "UPDATE api_key SET revoked_at = now()", DENIED],
    ["give a key other scopes", "UPDATE api_key SET scopes = '{admin}'", DENIED],
    ["delete a key", "DELETE FROM api_key", DENIED],
    ["revoke past the function", "UPDATE link SET state = state", DENIED],
    ["delete a link", "DELETE FROM link", DENIED],
    ["change a target", "UPDATE link SET target = 'https://example.org/'", DENIED],
    ["read an owner's changes", "SELECT seq FROM owner_changes('x', 0, 1, 1)", ALLOWED],
    ["rewrite the log of changes", "UPDATE link_change SET seq = seq", DENIED],
    ["register as a redirect process", "SELECT register_instance(gen_random_uuid(), 'x', 1, true)", DENIED],
    ["make a temporary table", "CREATE TEMP TABLE link (x int)", DENIED],
  ],
  "click-ingest": [
    ["read clicks", "SELECT click_id FROM click LIMIT 1", ALLOWED],
    [
      "store no click by the function",
      "SELECT store_clicks('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 1)",
      ALLOWED,
    ],
    ["store a click past the function", "INSERT INTO click DEFAULT VALUES", DENIED],
    ["change a click", "UPDATE click SET code = code", DENIED],
    ["read what clicks add up to", "SELECT h.code FROM click_hour h, click_hour_value, owner_hour LIMIT 1", ALLOWED],
    ["change what clicks add up to", "UPDATE click_hour SET people_q0 = 0", DENIED],
    ["make the coming days", "SELECT make_click_days('{}', 8, 400)", ALLOWED],
    ["drop a day past the function", "DELETE FROM click_retention", DENIED],
    ["count dead letters", "SELECT count(*), sum(bytes) FROM dead_click", ALLOWED],
    ["read dead letters", "SELECT payload FROM dead_click LIMIT 1", DENIED],
    ["throw a dead letter away", "DELETE FROM dead_click", DENIED],
    ["make a table", "CREATE TABLE mine (x int)", DENIED],
    ["make a temporary table", "CREATE TEMP TABLE click (x int)", DENIED],
  ],
};

/** Checks what the engine was told about every container, and that nothing secret is among it. */
export function checkConfinement(containers) {
  const failing = (holds) =>
    containers
      .filter((one) => !holds(one))
      .map(({ Name }) => Name)
      .join(" ");
  const each = (name, holds) => check(`every container ${name}`, failing(holds) === "", failing(holds));
  each("has a read-only root", ({ HostConfig }) => HostConfig.ReadonlyRootfs);
  each("gave up all capabilities", ({ HostConfig }) => HostConfig.CapDrop?.includes("ALL"));
  each("cannot gain privileges", ({ HostConfig }) => HostConfig.SecurityOpt?.includes("no-new-privileges:true"));
  each("has a bound on memory and processes", ({ HostConfig }) => HostConfig.Memory > 0 && HostConfig.PidsLimit > 0);
  // Root is only the one that handed out the secrets, and it has ended.
  const handedOut = ({ Config, State }) => Config.Env.includes("SERVICE=secrets") && State.Status === "exited";
  each(
    "runs as a numbered user that is not root",
    (one) => /^[1-9]\d*:[1-9]\d*$/.test(one.Config.User) || handedOut(one),
  );
  each("has no password in its configuration", (one) => !/postgres:\/\/|PASSWORD=/.test(JSON.stringify(one.Config)));
}

/** Checks a service from inside its container. */
export function checkService(service, id) {
  const status = docker(["exec", id, "cat", "/proc/1/status"]).out;
  check(
    `${service}: process 1 holds no capability`,
    /^CapEff:\s+0+$/m.test(status) && /^NoNewPrivs:\s+1$/m.test(status),
    status,
  );
  const write = docker(["exec", id, "sh", "-c", "touch /app/x 2>&1 || touch /run/linkfence/x 2>&1"]);
  check(`${service}: cannot write its code or its secrets`, write.status !== 0, write.out);
  const statements = STATEMENTS[service];
  const probe = docker(["exec", "-i", id, "node", "-e", PROBE], {
    input: JSON.stringify(statements.map(([, text]) => text)),
  });
  const answers = probe.status === 0 ? JSON.parse(probe.out) : [];
  for (const [i, [what, , expected]] of statements.entries()) {
    check(
      `${service}: ${expected === ALLOWED ? "may" : "may not"} ${what}`,
      answers[i] === expected,
      answers[i] ?? probe.err,
    );
  }
}

/** The servers trust their own socket, so that a role can be tried without its password. */
export function checkConnect(database, id, { role, name, allowed }) {
  const attempt = docker(["exec", id, "psql", "-U", role, "-d", name, "-Atc", "SELECT 1"]);
  const refused = attempt.err.includes("permission denied for database");
  const held = allowed ? attempt.status === 0 : refused;
  check(`${database}: ${role} ${allowed ? "may" : "may not"} connect to ${name}`, held, attempt.err);
}

/** Whether a name can be reached at all from a container; false also where it has no address. */
export function reaches(id, host, port) {
  const connect = `const s = require("node:net").connect(${port}, "${host}"); s.setTimeout(2000, () => process.exit(1));
s.on("connect", () => process.exit(0)); s.on("error", () => process.exit(1));`;
  return docker(["exec", id, "node", "-e", connect]).status === 0;
}
