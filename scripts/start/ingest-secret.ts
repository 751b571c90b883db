// The secret that click-ingest shares with those who call it.
import { randomBytes } from "node:crypto";
import { access, link, unlink, writeFile } from "node:fs/promises";

/** 256 bits: nobody guesses them. */
const BYTES = 32;

/**
 * Makes the secret where there is none: neither in the environment, which services get as it is, nor in the file.
 * @returns what the services' environments lack
 */
export async function ensureIngestSecret(env: NodeJS.ProcessEnv, file: string): Promise<Record<string, string>> {
  if (env.CLICK_INGEST_SECRET !== undefined || env.CLICK_INGEST_SECRET_FILE !== undefined) return {};
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (!exists) await writeOnce(file, randomBytes(BYTES).toString("base64url"));
  return { CLICK_INGEST_SECRET_FILE: file };
}

/** Whole or not at all, and readable by its owner alone. */
async function writeOnce(file: string, secret: string): Promise<void> {
  const draft = `${file}.new-${process.pid}`;
  await writeFile(draft, `${secret}\n`, { mode: 0o600, flag: "w" });
  await link(draft, file);
  await unlink(draft);
}
