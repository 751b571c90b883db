import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";

/** One query, one file: seconds at most. */
const TIMEOUT_MS = 30_000;

export type AdminKey = {
  file: string;
  /** The key itself, when it was made now: it is shown this once. */
  fresh: string | null;
  /** What the person should know where nothing was made and the file is missing. */
  note: string | null;
};

/** Has the first admin key made where there is none. Throws what the write service's command printed when it fails. */
export async function ensureAdminKey(databaseUrl: string, file: string): Promise<AdminKey> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, ["services/write/dist/admin-key.js", "--file", file], {
    env: { PATH, HOME, DATABASE_URL: databaseUrl },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIMEOUT_MS,
  });
  let output = "";
  let complaint = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString("utf8");
  });
  child.stderr.on("data", (chunk: Buffer) => {
    complaint += chunk.toString("utf8");
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`the admin key could not be made: ${complaint.trim()}`);
  const answer = JSON.parse(output) as { created: boolean; reason?: string };
  if (answer.created) return { file, fresh: (await readFile(file, "utf8")).trim(), note: null };
  const missing = answer.reason?.includes("not in this file") ?? false;
  return { file, fresh: null, note: missing ? (answer.reason ?? null) : null };
}
