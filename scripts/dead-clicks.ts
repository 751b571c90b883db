// What an operator does with the clicks that could not be stored.
import { join } from "node:path";
import { createDatabase, type Database } from "@linkfence/db";
import { findLocalPostgres, LocalPostgresError } from "@linkfence/local-postgres";
import { ConfigError, readConfig } from "@linkfence/service-shell";
import { Type } from "typebox";
import { configSchema } from "../services/click-ingest/src/config.ts";
import { createDeadClickDesk, type DeadClick } from "../services/click-ingest/src/store/dead-click-desk.ts";
import { readArgument, readNumber, runCommand, UsageError } from "./command.ts";
import { startSchema } from "./start/settings.ts";

const HELP = `Looks at the clicks that could not be stored, has them stored after all, or throws them away.

Usage: pnpm dead-clicks list [--limit <n>] [--after <id>]
       pnpm dead-clicks show <id> ...
       pnpm dead-clicks replay <id> ... | --all
       pnpm dead-clicks discard <id> ... | --all

  list     one line of JSON each, the oldest first, without what came
  show     the same with what came, and what is wrong with it
  replay   stores the clicks and adds them up, once each; a letter whose click is stored is removed, and one whose click
           is still wrong, too late or refused stays
  discard  removes the letters for good

  --limit <n>   lines at the most (1 to 100000); 100 unless it says otherwise
  --after <id>  only letters with a greater number

It works on the statistics database, which has to run; click-ingest may run or not. Environment: STATS_DATABASE_URL, or
the embedded server of a running \`npm start\` (LINKFENCE_DATA_DIR, by default .data); CLICK_RETENTION_DAYS and
DIMENSION_VALUES_MAX as click-ingest has them.

Exit status: 0 done, 1 a letter is unknown or could not be stored, 64 wrong arguments, 69 the database cannot be reached,
78 a setting was refused.
`;
/** EX_UNAVAILABLE and EX_CONFIG of sysexits(3). */
const EXIT = { unavailable: 69, config: 78 };
const ID_MAX = 9_999_999_999;
const LIMIT_DEFAULT = "100";
const LIMIT_MAX = 100_000;
/** Letters worked through at a time with --all. */
const PAGE = 500;
/** An operator waits; a statement that takes longer meets a lock that somebody holds. */
const TIMEOUT_MS = 10_000;

const schema = Type.Object({
  LINKFENCE_DATA_DIR: startSchema.properties.LINKFENCE_DATA_DIR,
  STATS_DATABASE_URL: startSchema.properties.STATS_DATABASE_URL,
  CLICK_RETENTION_DAYS: configSchema.properties.CLICK_RETENTION_DAYS,
  DIMENSION_VALUES_MAX: configSchema.properties.DIMENSION_VALUES_MAX,
});

type Desk = ReturnType<typeof createDeadClickDesk>;
type Values = { limit?: string | undefined; after?: string | undefined; all: boolean };

/** Everything but what JSON escapes that moves a terminal's cursor or ends its line. */
function print(value: object): void {
  const text = JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  process.stdout.write(`${text}\n`);
}

async function list(desk: Desk, page: { limit: number; after: number }): Promise<number> {
  const letters = await desk.list(page);
  for (const { payload, detail: _, ...rest } of letters) print({ ...rest, bytes: Buffer.byteLength(payload) });
  return 0;
}

async function show(desk: Desk, ids: readonly number[]): Promise<number> {
  const letters = await Promise.all(ids.map((id) => desk.show(id)));
  for (const letter of letters) if (letter) print(letter);
  return tellUnknown(ids.filter((_, index) => !letters[index]));
}

function tellUnknown(ids: readonly number[]): number {
  for (const id of ids) process.stderr.write(`there is no dead letter ${id}\n`);
  return ids.length === 0 ? 0 : 1;
}

async function replay(desk: Desk, ids: readonly number[]): Promise<number> {
  let failed = 0;
  for (const id of ids) {
    const outcome = await desk.replay(id);
    print({ id, outcome });
    if (outcome !== "stored" && outcome !== "duplicate") failed += 1;
  }
  return failed === 0 ? 0 : 1;
}

async function discard(desk: Desk, ids: readonly number[]): Promise<number> {
  const gone = new Set(await desk.discard(ids));
  for (const id of gone) print({ id, outcome: "discarded" });
  return tellUnknown(ids.filter((id) => !gone.has(id)));
}

/** Works through all letters there are now, a page at a time. */
async function forAll(desk: Desk, work: (desk: Desk, ids: readonly number[]) => Promise<number>): Promise<number> {
  let status = 0;
  let page: DeadClick[] = [];
  for (let after = 0; ; after = page.at(-1)?.id ?? 0) {
    page = await desk.list({ after, limit: PAGE });
    if (page.length === 0) return status;
    status = Math.max(
      status,
      await work(
        desk,
        page.map(({ id }) => id),
      ),
    );
  }
}

const WORKS = { show, replay, discard };

/** Judges the arguments before anything is connected to. */
function decide(values: Values, [name = "", ...rest]: readonly string[]): (desk: Desk) => Promise<number> {
  if (name === "list") return decideList(values, rest);
  if (name !== "show" && name !== "replay" && name !== "discard")
    throw new UsageError("say what to do: list, show, replay or discard");
  refusePaging(values, name);
  const ids = rest.map((text) => readArgument(`the id ${JSON.stringify(text)}`, text, { min: 1, max: ID_MAX }));
  if (values.all && name === "show") throw new UsageError("--all is for replay and discard: list shows all letters");
  if (values.all && ids.length > 0) throw new UsageError(`name the letters to ${name}, or say --all, not both`);
  if (values.all) return (desk) => forAll(desk, WORKS[name]);
  if (ids.length === 0)
    throw new UsageError(
      `name the letters to ${name} by their ids, which list shows${name === "show" ? "" : ", or say --all"}`,
    );
  return (desk) => WORKS[name](desk, ids);
}

function decideList(values: Values, [extra]: readonly string[]): (desk: Desk) => Promise<number> {
  if (extra !== undefined) throw new UsageError(`list takes no ids (${JSON.stringify(extra)}): show does`);
  if (values.all) throw new UsageError("--all is for replay and discard: list shows as many letters as --limit says");
  const limit = readNumber("limit", values.limit ?? LIMIT_DEFAULT, { min: 1, max: LIMIT_MAX });
  const after = readNumber("after", values.after ?? "0", { min: 0, max: ID_MAX });
  return (desk) => list(desk, { limit, after });
}

function refusePaging(values: Values, name: string): void {
  for (const option of ["limit", "after"] as const)
    if (values[option] !== undefined) throw new UsageError(`--${option} is for list, and not for ${name}`);
}

/** Says what is wrong with the database, and how to say which one it is. */
function tellWhere(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  if (error instanceof ConfigError) return said;
  const other = "set STATS_DATABASE_URL to click-ingest's database";
  if (error instanceof NoLocalPostgres)
    return `${said}. Start linkfence (npm start), set LINKFENCE_DATA_DIR to its data directory, or ${other}.`;
  return `the statistics database cannot be used (${said}). See that it runs and is linkfence's, or ${other}.`;
}

class NoLocalPostgres extends Error {}

async function findEmbedded(dataDir: string): Promise<string> {
  try {
    return (await findLocalPostgres(join(dataDir, "postgres")))("linkfence_stats");
  } catch (error) {
    const { cause = error } = error instanceof LocalPostgresError ? error : {};
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new NoLocalPostgres(`no embedded database can be reached in the data directory ${dataDir}: ${reason}`);
  }
}

async function work(decided: (desk: Desk) => Promise<number>): Promise<number> {
  let database: Database | undefined;
  try {
    const config = readConfig(schema, process.env);
    const url = config.STATS_DATABASE_URL ?? (await findEmbedded(config.LINKFENCE_DATA_DIR));
    database = createDatabase({
      url,
      applicationName: "linkfence-dead-clicks",
      max: 2,
      queryTimeoutMs: TIMEOUT_MS,
    });
    const bounds = { retentionDays: config.CLICK_RETENTION_DAYS, valuesMax: config.DIMENSION_VALUES_MAX };
    return await decided(createDeadClickDesk({ database, ...bounds, timeoutMs: TIMEOUT_MS }));
  } catch (error) {
    process.stderr.write(`${tellWhere(error)}\n`);
    return error instanceof ConfigError ? EXIT.config : EXIT.unavailable;
  } finally {
    await database?.close();
  }
}

await runCommand({
  help: HELP,
  options: {
    limit: { type: "string" },
    after: { type: "string" },
    all: { type: "boolean", default: false },
  },
  run: (values, names) => work(decide(values, names)),
});
