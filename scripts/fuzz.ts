// Runs the fuzzer of the admin API with more requests than the tests do. It is one of the tests, and needs what they need.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readNumber, runCommand, UsageError } from "./command.ts";

const HELP = `Sends requests made from the OpenAPI document, right ones and bent ones, to a write service on a database of
its own, and holds every answer against the document. Prints what was answered, by operation and status.

Usage: pnpm fuzz [--requests <n>] [--seed <n>]

  --requests <n>  for each operation (1 to 1000000); 2000 unless it says otherwise
  --seed <n>      0 to 2147483647; chosen anew each time unless it says otherwise, and printed

Exit status: 0 no fault was found, 1 one was, 64 wrong arguments.
`;
const REQUESTS_MAX = 1_000_000;
const SEED_MAX = 2 ** 31 - 1;

/** Resolves with the exit status of the test run. */
function fuzz(requests: number, seed: number): Promise<number> {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const jest = ["--experimental-vm-modules", "node_modules/jest/bin/jest.js", "services/write/src/openapi/fuzz.e2e"];
  const env = { ...process.env, LINKFENCE_FUZZ_REQUESTS: String(requests), LINKFENCE_FUZZ_SEED: String(seed) };
  const child = spawn(process.execPath, jest, { cwd: root, env, stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

await runCommand({
  help: HELP,
  options: { requests: { type: "string", default: "2000" }, seed: { type: "string" } },
  run(values, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    const requests = readNumber("requests", values.requests, { min: 1, max: REQUESTS_MAX });
    const seed = readNumber("seed", values.seed ?? String(Date.now() % SEED_MAX), { min: 0, max: SEED_MAX });
    return fuzz(requests, seed);
  },
});
