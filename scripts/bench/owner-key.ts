import { addApiKey } from "@linkfence/testkit";
import { withSql } from "./own-server.ts";

/** Gives an owner a new key with all scopes. Returns its text. */
export function addOwnerKey(url: string, owner: string): Promise<string> {
  return withSql(url, 1, (sql) => addApiKey(sql, { owner, scopes: ["admin"], name: "bench" }));
}
