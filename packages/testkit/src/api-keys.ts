import { createHash, randomBytes } from "node:crypto";
import postgres from "postgres";

export type NewKey = { owner: string; scopes: readonly string[]; name?: string; expiresAt?: Date | null };

/** Puts a key into a main database, as the write service makes them. Returns its text. */
export async function addApiKey(sql: postgres.Sql, key: NewKey): Promise<string> {
  const { owner, scopes, name = "test", expiresAt = null } = key;
  const id = randomBytes(6).toString("hex");
  const secret = randomBytes(32).toString("base64url");
  const hash = createHash("sha256").update(secret).digest();
  await sql`INSERT INTO api_key (id, owner, name, scopes, secret_hash, expires_at)
    VALUES (${id}, ${owner}, ${name}, ${[...scopes]}, ${hash}, ${expiresAt})`;
  return `linkfence_${id}_${secret}`;
}

/** Makes an admin key as the write service's own command would, without the second that it takes to start. Returns it. */
export async function makeAdminKey(databaseUrl: string): Promise<string> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    return await addApiKey(sql, { owner: "admin", scopes: ["admin"], name: "admin key of the installation" });
  } finally {
    await sql.end({ timeout: 1 });
  }
}
