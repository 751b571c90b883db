// Many links at once: one statement for all of them, and one more for the random codes among them that were taken.
import { Problem } from "@linkfence/contracts";
import type { TransactionSql } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { NewCode } from "../domain/code.ts";
import { type Creator, insertLinks, type LinkRow, type SourcedDraft, type StoredLink } from "./link-rows.ts";
import { aliasTaken, CODE_TRIES, codeSpaceExhausted } from "./refusals.ts";

/** What became of one draft: the link, or why there is none. */
export type BatchOutcome = StoredLink | Problem;

/** Creates the insertion of drafts within a transaction. Of two equal aliases the first wins. One outcome a draft, in order. */
export function createBatchInserter({ newCode, counts }: { newCode: NewCode; counts: Pick<Counts, "collisions"> }) {
  return async function insertBatch(sql: TransactionSql, drafts: readonly SourcedDraft[], author: Creator) {
    const outcomes = new Array<BatchOutcome | undefined>(drafts.length);
    const used = new Set<string>();
    let waiting = [...drafts.entries()];
    for (let tries = 0; tries < CODE_TRIES && waiting.length > 0; tries++) {
      const rows = claimCodes(waiting, used, newCode);
      const authored = [...rows.values()].map((row) => ({ ...row, author }));
      const created = rows.size > 0 ? await insertLinks(sql, authored) : [];
      const byCode = new Map(created.map((link) => [link.code, link]));
      for (const [i, { alias }] of waiting) {
        outcomes[i] = byCode.get(rows.get(i)?.code ?? "") ?? (alias === null ? undefined : aliasTaken(alias));
        if (!outcomes[i]) counts.collisions += 1;
      }
      waiting = waiting.filter(([i]) => outcomes[i] === undefined);
    }
    if (outcomes.some((outcome) => outcome && !(outcome instanceof Problem) && outcome.kind === "ALIAS"))
      await sql`SELECT pg_notify('link_created', '')`;
    return drafts.map((draft, i) => outcomes[i] ?? codeSpaceExhausted(draft));
  };
}

/** Counts what a batch created, once it is committed. */
export function countCreated(counts: Pick<Counts, "created">, outcomes: readonly BatchOutcome[]): void {
  for (const outcome of outcomes) if (!(outcome instanceof Problem)) counts.created[outcome.kind] += 1;
}

/** Gives each draft the code to try next, unless another draft of the batch has it already. */
function claimCodes(
  waiting: readonly [number, SourcedDraft][],
  used: Set<string>,
  newCode: NewCode,
): Map<number, LinkRow> {
  const rows = new Map<number, LinkRow>();
  for (const [i, draft] of waiting) {
    const code = draft.alias ?? newCode(draft.codeLength);
    if (used.has(code)) continue;
    used.add(code);
    rows.set(i, { code, kind: draft.alias === null ? "RANDOM" : "ALIAS", draft });
  }
  return rows;
}
