// Whose an exported file is, and how a proxy in front sends it.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase } from "@linkfence/db";
import { addApiKey, checkFetched, type Stack, startStack, waitFor } from "@linkfence/testkit";
import { storeClicks } from "../../services/click-ingest/src/test-support/stored-clicks.ts";
import { createCounts } from "../../services/write/src/counts.ts";
import { createExports } from "../../services/write/src/exports.ts";
import { createDownloads } from "../../services/write/src/http/download.ts";
import { createPartialApp } from "../../services/write/src/partial-app.fixture.ts";
import { YESTERDAY } from "./click-senders.ts";
import { closingAfterwards } from "./closing.ts";
import { startNginx } from "./nginx.ts";
import { missingPrograms } from "./programs.ts";
import type { EvidenceCase } from "./report.ts";

const CLICKS = 20;
/** Stands in every row of the file, and in no other answer. */
const SECRET = "secret-referrer.example";
type Export = { id: string; state: string; rows: number };
type World = Awaited<ReturnType<typeof openWorld>>;

/** The whole product, with an export of ann's that is written. */
async function openWorld(later: (close: () => unknown) => void, writeEnv: Record<string, string> = {}) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  later(() => rm(directory, { recursive: true, force: true }));
  const stack = await startStack({ redirects: 0, ingestEnv: { EXPORT_DIR: directory }, writeEnv });
  later(stack.stop);
  const [ann, bob] = await Promise.all(
    ["ann", "bob"].map((owner) => addApiKey(stack.main.sql, { owner, scopes: ["exports"], expiresAt: null })),
  );
  const clicks = Array.from({ length: CLICKS }, (_, n) => ({ at: YESTERDAY + n, owner: "ann", referrer: SECRET }));
  await storeClicks(stack.stats, clicks);
  const ask = async (
    key: string | undefined,
    path: string,
    init: RequestInit = {},
    url = stack.write.url,
    proxied = "",
  ) => {
    const headers = { ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }), ...init.headers };
    const answer = await fetch(`${url}/v1/exports${path}`, { ...init, headers });
    // A proxy that sends a file itself has some fields of its own.
    return url === proxied ? answer : checkFetched(init.method ?? "GET", `/v1/exports${path}`, answer);
  };
  const json = { "Content-Type": "application/json" };
  const { id } = (await (await ask(ann, "", { method: "POST", headers: json, body: "{}" })).json()) as Export;
  await waitFor("the export", async () => ((await (await ask(ann, `/${id}`)).json()) as Export).state === "SUCCEEDED");
  return { stack, directory, ann, bob, ask, id };
}

/** What somebody gets by every way that leads to an export, and whether anything of the file was among it. */
async function tryEverything({ ask, id }: World, key: string | undefined, url?: string) {
  const ways: [string, RequestInit][] = [
    [`/${id}`, {}],
    [`/${id}/download`, {}],
    [`/${id}/download`, { method: "HEAD" }],
    [`/${id}/download`, { headers: { Range: "bytes=0-99" } }],
    [`/${id}`, { method: "DELETE" }],
  ];
  const answers = [];
  for (const [path, init] of ways) {
    const answer = await ask(key, path, init, url);
    answers.push({ status: answer.status, text: (await answer.text()) + [...answer.headers.values()].join() });
  }
  return {
    statuses: answers.map(({ status }) => status),
    leaks: answers.some(({ text }) => text.includes(SECRET) || text.includes("clicks-")),
  };
}

export const x3: EvidenceCase = {
  id: "X3",
  shows:
    "an export is its owner's alone: with another owner's key every way to it is 404, as for one that does not exist, without a byte or a name of the file; without a key it is 401",
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      const foreign = await tryEverything(world, world.bob);
      report.check("another owner's key", foreign, { statuses: [404, 404, 404, 404, 404], leaks: false });
      const nobody = await tryEverything(world, undefined);
      report.check("no key", nobody, { statuses: [401, 401, 401, 401, 401], leaks: false });
      const listed = (await (await world.ask(world.bob, "")).json()) as { items: Export[] };
      report.check("exports that the other owner has", listed.items, []);
      const absent = { ...world, id: world.id.replace(/^./, (first) => (first === "0" ? "1" : "0")) };
      report.check("one that does not exist", await tryEverything(absent, world.bob), foreign);
      const own = await tryEverything(world, world.ann);
      report.check("its owner", own, { statuses: [200, 200, 200, 206, 409], leaks: true });
    });
  },
};

/** The API in this process, which asks for exports as their owner, whoever calls. */
async function startCareless(later: (close: () => unknown) => void, { main, ingest }: Stack): Promise<string> {
  const db = createDatabase({ url: main.url, applicationName: "evidence", max: 2, queryTimeoutMs: 5000 });
  later(() => db.close());
  const exports = createExports({ baseUrl: ingest.url, timeoutMs: 5000 });
  const find: typeof exports.find = (_owner, id) => exports.find("ann", id);
  const downloads = createDownloads({ max: 5, maxPerOwner: 5, stallMs: 5000 });
  const app = createPartialApp({ db, counts: createCounts() }, { exports: { ...exports, find }, downloads });
  const server = createServer(app).listen(0, "127.0.0.1");
  later(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export const x3c: EvidenceCase = {
  id: "X3c",
  shows: "where the owner is not asked for, whoever knows the id has the file",
  control: true,
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      const url = await startCareless(later, world.stack);
      const { statuses, leaks } = await tryEverything(world, world.bob, url);
      report.check(
        "another owner's key",
        { downloads: statuses.slice(0, 4), leaks },
        {
          downloads: [200, 200, 200, 206],
          leaks: true,
        },
      );
    });
  },
};

const PREFIX = "/exported/";

export const x3n: EvidenceCase = {
  id: "X3n",
  shows:
    "nginx in front sends the files itself, ranges included, to whom the service says so, and to nobody who asks nginx for them",
  missing: () => missingPrograms("nginx"),
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later, { EXPORT_ACCEL_PREFIX: PREFIX });
      const nginx = await startNginx(
        (_directory, address) => `
  server {
    listen ${address};
    location / { proxy_pass ${world.stack.write.url}; proxy_set_header Host $http_host; }
    location ${PREFIX} { internal; alias ${world.directory}/; }
  }`,
      );
      later(nginx.stop);
      const [store = ""] = await readdir(world.directory);
      const [name = ""] = await readdir(join(world.directory, store));
      const outside = await fetch(`${nginx.url}${PREFIX}${store}/${name}`);
      report.check("the file's own path, asked for from outside", outside.status, 404);
      const download = (key: string | undefined, headers = {}) =>
        world.ask(key, `/${world.id}/download`, { headers }, nginx.url, nginx.url);
      const whole = await download(world.ann);
      const text = await whole.text();
      report.check("lines of the file", [whole.status, text.split("\r\n").length], [200, CLICKS + 2]);
      report.check("its type", whole.headers.get("content-type"), "text/csv; charset=utf-8; header=present");
      report.check(
        "its name",
        /^attachment; filename="?clicks-ann-/.test(whole.headers.get("content-disposition") ?? ""),
        true,
      );
      report.check("where it lies, as the owner is told", whole.headers.get("x-accel-redirect"), null);
      const part = await download(world.ann, { Range: "bytes=3-9" });
      report.check("a part of it", [part.status, await part.text()], [206, text.slice(3, 10)]);
      report.check("another owner", (await download(world.bob)).status, 404);
      report.figure(nginx.version);
    });
  },
};
