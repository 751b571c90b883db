// A file of any size takes the memory of a batch, and others are served meanwhile. IMPORT_LINES=1000000 imports a million
// lines instead of the usual ones, and says how long it took.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readMetric } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { JSON_LINES, openFile } from "./imports.fixture.ts";

const LINES = Number(process.env.IMPORT_LINES ?? 10_000);
/** Every so many lines one is refused, and one has an alias. */
const EACH = 100;
/** What two imports may hold at their worst: bytes of two batches with all that is made of them, and the heap's slack. */
const MEMORY = 128 * 1024 * 1024;
/** So much larger is the file of the second test, so that holding it could not go unnoticed. */
const LARGE = 176 * 1024 * 1024;
const TIMEOUT_MS = Math.max(120_000, LINES);

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

function line(n: number): string {
  const alias = n % EACH === 1 ? `alias-${n}` : "";
  const target = n % EACH === 0 ? `nonsense ${n}` : `https://example.com/a/rather/usual/path/${n}?utm_source=mail`;
  return `${target},${alias},,Title of number ${n},one|two,"a note, with a comma"\n`;
}

/** Calls of somebody else, one after the other, and how long each took in ms. */
async function callUntil(stopped: AbortSignal): Promise<number[]> {
  const took: number[] = [];
  while (!stopped.aborted) {
    const startedAt = performance.now();
    const { status } = await world.api("GET", "/v1/links?limit=1");
    took.push(performance.now() - startedAt);
    expect(status).toBe(200);
  }
  return took.sort((a, b) => a - b);
}

const rss = () => readMetric(world.write, "linkfence_process_resident_memory_bytes");

test(
  `a file of ${LINES} lines is imported line by line in bounded memory`,
  async () => {
    await world.create({ target: "https://example.com/" });
    const before = await rss();
    let most = before;
    const imported = new AbortController();
    const others = callUntil(imported.signal);
    const startedAt = performance.now();
    const file = openFile(world.write.url, world.adminKey);
    await file.write("target,alias,expiresAt,title,tags,note\n");
    for (let n = 1; n <= LINES; n += 1000) {
      const lines = Array.from({ length: Math.min(1000, LINES - n + 1) }, (_, i) => line(n + i));
      await file.write(lines.join(""));
      most = Math.max(most, await rss());
    }
    file.end();
    const { status, body } = await file.answer;
    const seconds = (performance.now() - startedAt) / 1000;
    imported.abort();
    const took = await others;
    const refused = Math.floor(LINES / EACH);
    expect(status).toBe(201);
    expect(body).toMatchObject({ lines: LINES, created: LINES - refused, already: 0, refused });
    const [row] = await world.database.sql<{ links: number; first: number; last: number }[]>`
      SELECT count(DISTINCT import_line)::int AS links, min(import_line)::int AS first, max(import_line)::int AS last
        FROM link WHERE import_id = ${body.id}`;
    expect(row).toEqual({ links: LINES - refused, first: 2, last: LINES % EACH === 0 ? LINES : LINES + 1 });
    expect(most - before).toBeLessThan(MEMORY);
    const at = (share: number) => Math.round(took[Math.floor((took.length - 1) * share)] ?? 0);
    process.stderr.write(
      `${LINES} lines in ${seconds.toFixed(1)} s (${Math.round(LINES / seconds)} a second), ` +
        `${Math.round((most - before) / 1e6)} MB above ${Math.round(before / 1e6)} MB; ` +
        `${(await readMetric(world.write, "linkfence_process_cpu_seconds_total")).toFixed(1)} s of a processor; ` +
        `${took.length} other calls: median ${at(0.5)} ms, 99 % ${at(0.99)} ms, slowest ${at(1)} ms\n`,
    );
  },
  TIMEOUT_MS,
);

test(
  "a file larger than the memory that an import may take is read to its end, also where its lines are long",
  async () => {
    const before = await rss();
    let most = before;
    // Each is read, taken apart and judged like any other, and refused for its note alone.
    const long = `${JSON.stringify({ target: "https://example.com/", note: "x".repeat(31_000) })}\n`;
    const piece = long.repeat(64);
    const pieces = Math.ceil(LARGE / piece.length);
    const file = openFile(world.write.url, world.adminKey, { type: JSON_LINES });
    for (let n = 0; n < pieces; n += 1) {
      await file.write(piece);
      most = Math.max(most, await rss());
    }
    file.end();
    const { status, body } = await file.answer;
    expect([status, body]).toMatchObject([201, { created: 0, refused: pieces * 64 }]);
    expect(body.bytes).toBeGreaterThan(LARGE);
    expect(body.errors[0]).toMatchObject({ line: 1, field: "note", rule: "maxLength" });
    expect(most - before).toBeLessThan(MEMORY);
    process.stderr.write(`${Math.round(body.bytes / 1e6)} MB: ${Math.round((most - before) / 1e6)} MB above\n`);
  },
  TIMEOUT_MS,
);
