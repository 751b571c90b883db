import { mintKey } from "../../services/write/src/store/key-secret.ts";
import { withSql } from "./own-server.ts";

/** Gives an owner a new key with all scopes. Returns its text. */
export async function addOwnerKey(url: string, owner: string): Promise<string> {
  const { id, text, secretHash } = mintKey();
  await withSql(
    url,
    1,
    (sql) => sql`
      INSERT INTO api_key (id, owner, name, scopes, secret_hash)
      VALUES (${id}, ${owner}, 'bench', '{admin}', ${secretHash})`,
  );
  return text;
}
