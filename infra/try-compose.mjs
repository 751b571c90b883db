// The whole deployment for real: base images where they are missing, build, up, then use it as a person would, and take
// it down again until nothing is left. Run from anywhere: node infra/try-compose.mjs
// It runs as a project of its own on free ports, so that an installation on the same machine is not touched.
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { createCompose, docker, run, stopContainer } from "./trial/engine.mjs";
import { send } from "./trial/http.mjs";
import { check, conclude, until } from "./trial/report.mjs";
import { checkConfinement, checkConnect, checkService, reaches } from "./trial/rights.mjs";

const PROJECT = "linkfence-try";
const BASE_IMAGES = ["debian:bookworm-slim", "node:20-bookworm-slim", "postgres:16-bookworm"];
const LONG_RUNNING = ["main-db", "stats-db", "click-ingest", "write", "redirect", "balancer"];
/** Two new database clusters, migrations and six health checks on a small machine take about 20 s. */
const HEALTHY_DEADLINE_MS = 180_000;
/** A revocation that is not confirmed takes one notification or one poll; a click takes one batch. */
const SOON_MS = 5000;
const TARGET = "https://example.com/landing?from=trial";
/** How many GET requests of each code were answered 302: exactly these are clicks. */
const clicks = new Map();

const [redirectPort, adminPort] = [await freePort(), await freePort()];
const redirects = `http://127.0.0.1:${redirectPort}`;
const admin = `http://127.0.0.1:${adminPort}`;
const { compose, command, containers, inspectAll, leftovers } = createCompose(PROJECT, {
  LINKFENCE_REDIRECT_ADDRESS: `127.0.0.1:${redirectPort}`,
  LINKFENCE_ADMIN_ADDRESS: `127.0.0.1:${adminPort}`,
  PUBLIC_BASE_URL: redirects,
});

if (docker(["info"]).status !== 0) {
  process.stderr.write("No container engine answers. infra/README.md says how to start one.\n");
  process.exit(1);
}
process.stdout.write(`using ${command}, project ${PROJECT}\n`);
compose(["down", "--volumes", "--remove-orphans"]);
try {
  if (prepareImages() && (await start("first start"))) await tryEverything();
} catch (error) {
  check("the trial came to its end", false, error.stack);
} finally {
  takeDown();
}
process.exitCode = conclude();

async function tryEverything() {
  const key = adminKey();
  check("an admin key was made", /^\S{20,}$/.test(key));
  checkRights();
  const link = await tryLife(key);
  const other = await create(key);
  await tryStop(other.code);
  await tryOutages(key, other.code);
  await tryRestart(key, link.code, other.code);
  const logs = compose(["logs", "--no-color"]).out;
  check(
    "no log holds the key or a password",
    logs !== "" && !logs.includes(key) && !/postgres:\/\/[^\s"]*:[^\s"]*@/.test(logs),
  );
}

function prepareImages() {
  const missing = BASE_IMAGES.filter((image) => docker(["image", "inspect", image]).status !== 0);
  const unreachable = missing.filter((image) => docker(["pull", "--quiet", image]).status !== 0);
  if (unreachable.length > 0) {
    const script = fileURLToPath(new URL("make-base-images.sh", import.meta.url));
    check(`made ${unreachable.join(", ")}`, run("bash", [script], { show: true }).status === 0);
  }
  const build = compose(["build"]);
  return check("the images build", build.status === 0, `${build.out}${build.err}`.slice(-500));
}

async function start(name) {
  const up = compose(["up", "-d"]);
  if (!check(`${name}: up`, up.status === 0, up.err.slice(-500))) return false;
  const states = () => LONG_RUNNING.map((service) => compose(["ps", service]).out);
  const took = await until(allHealthy, HEALTHY_DEADLINE_MS, 1000);
  if (took === null) process.stdout.write(compose(["logs", "--no-color", "--tail=30"]).out);
  return check(`${name}: all seven containers are healthy`, took !== null, states().join(""));
}

/** Two of the redirects, one of everything else. */
function allHealthy() {
  return inspectAll().filter(({ State }) => State.Health?.Status === "healthy").length === LONG_RUNNING.length + 1;
}

function adminKey() {
  return compose(["run", "--rm", "-T", "admin-key"]).out.trim();
}

function checkRights() {
  checkConfinement(inspectAll());
  const [mainDb, statsDb, ingest, redirect] = ["main-db", "stats-db", "click-ingest", "redirect"].map(
    (one) => containers(one)[0],
  );
  for (const service of ["redirect", "write", "click-ingest"]) checkService(service, containers(service)[0]);
  checkConnect("main database", mainDb, { role: "linkfence_write", name: "linkfence", allowed: true });
  checkConnect("main database", mainDb, { role: "linkfence_ingest", name: "linkfence", allowed: false });
  checkConnect("main database", mainDb, { role: "linkfence_ingest", name: "postgres", allowed: false });
  checkConnect("statistics database", statsDb, { role: "linkfence_redirect", name: "linkfence_stats", allowed: false });
  checkConnect("statistics database", statsDb, { role: "linkfence_write", name: "linkfence_stats", allowed: false });
  check("redirect reaches the main database", reaches(redirect, "main-db", 5432));
  check("click-ingest does not reach the main database", !reaches(ingest, "main-db", 5432));
  check("redirect does not reach the statistics database", !reaches(redirect, "stats-db", 5432));
}

/** The life of a link through the published ports. */
async function tryLife(key) {
  check("without a key: 401", (await call("POST", "/v1/links", "none", { target: TARGET })).status === 401);
  const link = await create(key);
  check("the short URL has the public address", link.shortUrl === `${redirects}/${link.code}`, link.shortUrl);
  const found = [];
  for (let i = 0; i < 20; i++) found.push(await follow(link.code));
  const right = found.filter(
    ({ status, location, store }) => status === 302 && location === TARGET && store === "no-store",
  );
  check("20 requests: 302 to the target, no-store", right.length === 20, JSON.stringify(found[0]));
  check("HEAD: 302", (await follow(link.code, "HEAD")).status === 302);
  check("POST: 405", (await follow(link.code, "POST")).status === 405);
  check("an unknown code: 404", (await follow("nosuchcode")).status === 404);
  const total = async () => (await call("GET", `/v1/links/${link.code}/stats`, key)).body.total;
  const counted = await until(async () => (await total()) === clicks.get(link.code), SOON_MS);
  check("20 clicks are counted, HEAD and POST are not", counted !== null, await total());

  const revoked = await call("DELETE", `/v1/links/${link.code}`, key);
  check(
    "revoking: 200, or 202 where unconfirmed",
    [200, 202].includes(revoked.status) && revoked.body.outcome === "revoked",
    JSON.stringify(revoked),
  );
  if (revoked.body.effective?.confirmed) check("confirmed as effective: 410 at once", await isGone(link.code));
  else check("not confirmed, but soon: 410", (await until(() => isGone(link.code), SOON_MS)) !== null);
  const settled = await until(async () => (await total()) === clicks.get(link.code), SOON_MS);
  check(
    "revoked: its clicks are kept, each counted once",
    settled !== null,
    `${await total()} of ${clicks.get(link.code)}`,
  );
  return link;
}

/** A redirect process that is told to stop costs nobody an answer. */
async function tryStop(code) {
  const [leaving, staying] = containers("redirect");
  check("two redirect processes run", leaving !== undefined && staying !== undefined);
  const stopped = { done: false };
  const stopping = stopContainer(leaving).finally(() => {
    stopped.done = true;
  });
  const seen = {};
  for (let after = 0; after < 20; after += stopped.done ? 1 : 0) {
    const { status } = await follow(code).catch((error) => ({ status: error.code ?? error.message }));
    seen[status] = (seen[status] ?? 0) + 1;
  }
  check("a redirect process stops with status 0", (await stopping) === 0);
  check("meanwhile every request was answered 302", Object.keys(seen).join() === "302", JSON.stringify(seen));
}

/** Statistics never touch a redirect, and what is in memory outlives the main database for a while. */
async function tryOutages(key, code) {
  compose(["up", "-d", "redirect"]);
  await until(allHealthy, HEALTHY_DEADLINE_MS, 1000);
  const warm = await Promise.all(Array.from({ length: 20 }, () => follow(code)));
  check(
    "both processes know the link",
    warm.every(({ status }) => status === 302),
  );

  compose(["stop", "stats-db"]);
  check("no statistics database: still 302", (await follow(code)).status === 302);
  const stats = await call("GET", `/v1/links/${code}/stats`, key);
  check("no statistics database: statistics say 503", stats.status === 503, JSON.stringify(stats));
  compose(["start", "stats-db"]);
  const total = async () => (await call("GET", `/v1/links/${code}/stats`, key)).body.total;
  const caughtUp = await until(async () => (await total()) === clicks.get(code), HEALTHY_DEADLINE_MS, 500);
  check("back again: every click is counted once", caughtUp !== null, `${await total()} of ${clicks.get(code)}`);

  compose(["stop", "main-db"]);
  check("no main database: a link in memory still leads on", (await follow(code)).status === 302);
  const unknown = await follow("notinmemory");
  check(
    "no main database: 503 for what is not in memory",
    unknown.status === 503 && unknown.store === "no-store",
    JSON.stringify(unknown),
  );
  compose(["start", "main-db"]);
  check("back again: all are healthy", (await until(allHealthy, HEALTHY_DEADLINE_MS, 1000)) !== null);
}

/** Everything is taken down but its volumes, and started again. */
async function tryRestart(key, revokedCode, activeCode) {
  check("down without the volumes", compose(["down"]).status === 0);
  if (!(await start("second start"))) return;
  check("the key is the same", adminKey() === key);
  check("what was revoked is still gone", await isGone(revokedCode));
  check("what was active still leads on", (await follow(activeCode)).status === 302);
  check("a new link can be made", (await create(key)).code !== undefined);
}

function takeDown() {
  const down = compose(["down", "--volumes", "--remove-orphans"]);
  check("down with the volumes", down.status === 0, down.err);
  check("no container, volume or network is left", leftovers().length === 0, leftovers().join(" "));
}

async function create(key) {
  const { status, body } = await call("POST", "/v1/links", key, { target: TARGET });
  check("creating a link: 201", status === 201, JSON.stringify(body));
  return body;
}

async function call(method, path, key, content) {
  const body = content ? JSON.stringify(content) : "";
  const headers = { authorization: `Bearer ${key}`, ...(content ? { "content-type": "application/json" } : {}) };
  const { status, text } = await send(`${admin}${path}`, { method, headers, body });
  return { status, body: JSON.parse(text) };
}

async function follow(code, method = "GET") {
  const { status, headers } = await send(`${redirects}/${code}`, { method });
  if (method === "GET" && status === 302) clicks.set(code, (clicks.get(code) ?? 0) + 1);
  return { status, location: headers.location, store: headers["cache-control"] };
}

/** Asks ten times, so that both processes are asked. */
async function isGone(code) {
  const answers = await Promise.all(Array.from({ length: 10 }, () => follow(code)));
  return answers.every(({ status }) => status === 410);
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
