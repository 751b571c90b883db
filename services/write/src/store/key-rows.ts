import type { Sql } from "@linkfence/db";
import { utcText } from "./link-rows.ts";

/** The columns of an `ApiKey`. Whether it has expired is judged at each reading. */
export function keyColumns(sql: Sql) {
  return sql`
    id, owner, name, scopes,
    CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= clock_timestamp() THEN 'expired'
         ELSE 'active' END AS state,
    ${utcText(sql, "created_at")} AS "createdAt", created_by AS "createdBy",
    ${utcText(sql, "expires_at")} AS "expiresAt",
    ${utcText(sql, "revoked_at")} AS "revokedAt", revoked_by AS "revokedBy", replaced_by AS "replacedBy",
    ${utcText(sql, "last_used_at")} AS "lastUsedAt"`;
}
