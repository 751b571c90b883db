// Judges what a run has seen from outside, by one clock that never steps. Pure.
//
// Every moment stands on the side that can accuse nobody who is innocent: a request counts from before it was sent, an
// answer from after it had come.

/** What a redirect process answered, or 0 and null where the connection was refused or cut. Times in ms. */
export type Visit = { instance: number; sentAt: number; answeredAt: number; status: number; target: string | null };

/** What a write process said of a link that it called revoked. Times in ms. */
export type Word = {
  sentAt: number;
  answeredAt: number;
  /** How it was confirmed, or null where it was not. */
  confirmedBy: "acknowledged" | "ttl" | null;
  /** "In force within", as it said; null where it said nothing of that. */
  withinMs: number | null;
};

/** All that is known of one link. */
export type History = {
  code: string;
  target: string;
  /** When the first call that could revoke it was sent, whatever came of it; null where nobody called. */
  revokedFrom: number | null;
  words: readonly Word[];
  visits: readonly Visit[];
  /** What each process answered when all was over and well again. */
  last: readonly Visit[];
};

export type Rules = {
  /** Within this time after the call that revoked a confirmation has to come, as long as nothing hinders who decides it. */
  confirmedWithinMs: number;
  /** When the write processes or the database were hindered, until they had recovered. */
  hindered: readonly { from: number; to: number }[];
  /** True where everything was healed and waited for at the end. */
  ended: boolean;
};

export type Violation = {
  rule:
    | "old target after the confirmation"
    | "old target after it had to be in force"
    | "no answer that there may be"
    | "gone before it was revoked"
    | "confirmed late"
    | "never confirmed"
    | "not as it should be at the end";
  code: string;
  /** The moments that show it. */
  what: string;
};

/** Finds everything that must not be in one link's history. */
export function judgeLink(history: History, rules: Rules): Violation[] {
  const { code, words, visits, last } = history;
  const found = [...visits, ...last].flatMap((visit) => judgeVisit(history, visit));
  const late = judgeConfirmation(words, rules);
  if (late !== null) found.push({ rule: "confirmed late", code, what: late });
  if (!rules.ended) return found;
  if (history.revokedFrom !== null && !words.some(isConfirmed))
    found.push({ rule: "never confirmed", code, what: `${words.length} answers said otherwise` });
  const wanted = history.revokedFrom === null ? 302 : 410;
  for (const visit of last)
    if (visit.status !== wanted)
      found.push({ rule: "not as it should be at the end", code, what: `${tell(visit)} instead of ${wanted}` });
  return found;
}

const isConfirmed = ({ confirmedBy }: Word) => confirmedBy !== null;

function judgeVisit(history: History, visit: Visit): Violation[] {
  const { code, revokedFrom, words } = history;
  const accuse = (rule: Violation["rule"], what = "") => [{ rule, code, what: `${tell(visit)}${what}` }];
  if (visit.status === 0 || visit.status === 503) return [];
  if (visit.status === 410) {
    const early = revokedFrom === null || visit.answeredAt < revokedFrom;
    return early ? accuse("gone before it was revoked") : [];
  }
  if (visit.status !== 302 || visit.target !== history.target) return accuse("no answer that there may be");
  for (const word of words) {
    if (word.confirmedBy !== null && visit.sentAt > word.answeredAt)
      return accuse(
        "old target after the confirmation",
        `, confirmed (${word.confirmedBy}) at ${word.answeredAt.toFixed(1)}`,
      );
    const inForceAt = word.answeredAt + (word.withinMs ?? Number.POSITIVE_INFINITY);
    if (visit.sentAt > inForceAt)
      return accuse("old target after it had to be in force", `, in force at ${inForceAt.toFixed(1)}`);
  }
  return [];
}

/** Says why the confirmation is late, or null. Without a confirmation nothing is known of its time. */
function judgeConfirmation(words: readonly Word[], { confirmedWithinMs, hindered }: Rules): string | null {
  const from = words[0]?.sentAt;
  const to = words.find(isConfirmed)?.answeredAt;
  if (from === undefined || to === undefined || to - from <= confirmedWithinMs) return null;
  if (hindered.some((span) => span.from <= to && span.to >= from)) return null;
  return `called at ${from.toFixed(1)}, confirmed at ${to.toFixed(1)}, ${confirmedWithinMs.toFixed(1)} ms allowed`;
}

function tell({ instance, sentAt, answeredAt, status, target }: Visit): string {
  const where = target === null ? "" : ` to ${target}`;
  return `process ${instance} answered ${status}${where} at ${answeredAt.toFixed(1)}, asked at ${sentAt.toFixed(1)}`;
}
