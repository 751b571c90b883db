// The yardstick of redirects that are in no memory: the same question by key, as fast as one pipelined connection of the
// same driver answers it, and nothing done with the answer.
import { readFileSync } from "node:fs";
import postgres from "postgres";

const { url, codes, seconds, width } = JSON.parse(process.argv[2] ?? "{}");
/** Until the statement is prepared and the loop is compiled. */
const WARM_UP_MS = 1000;
const list = readFileSync(codes, "utf8")
  .split("\n")
  .filter((code) => code !== "");
const sql = postgres(url, { max: 1, max_pipeline: width, onnotice: () => {} });
const samples = [];
let asked = 0;
const startsAt = performance.now() + WARM_UP_MS;
const endsAt = startsAt + seconds * 1000;

async function ask() {
  for (;;) {
    const sentAt = performance.now();
    if (sentAt > endsAt) return;
    const rows = await sql`
      SELECT target, state, version, remaining_ms, owner FROM redirect_link WHERE code = ${list[asked++ % list.length]}`;
    if (rows.length !== 1) throw new Error("a code is not there");
    const now = performance.now();
    if (sentAt >= startsAt && now <= endsAt) samples.push(now - sentAt);
  }
}

await Promise.all(Array.from({ length: width }, ask));
await sql.end();
const sorted = Float64Array.from(samples).sort();
const at = (share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
process.stdout.write(
  `${JSON.stringify({ answered: samples.length, ms: seconds * 1000, failed: 0, p50: at(0.5), p99: at(0.99) })}\n`,
);
