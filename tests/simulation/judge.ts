// Judges a history by true time, which no process knows:
// - a request that started after a confirmation is not answered with the old target;
// - nor is one that started a TTL, by the clock of whoever answers, after the commit, confirmed or not;
// - what was lost when a standby took over is not confirmed after that was seen;
// - whoever waits is told as soon as a look at the registry shows that time alone suffices.

const NEVER = Number.POSITIVE_INFINITY;

/** One revocation of one code. */
export type Revocation = {
  readonly code: string;
  readonly seq: number;
  /** True ms at which it became visible. */
  readonly committedAt: number;
  /** True ms of the first confirmation. */
  confirmedAt: number;
  /** True ms at which a standby that lacked it took over. */
  lostAt: number;
};

/** What is known of a request when it starts. */
export type Asked = { code: string; instance: string; startedAt: number; due: Revocation | null; because: string };

export type Judge = ReturnType<typeof createJudge>;

/**
 * Creates it.
 * @param now true ms
 */
export function createJudge(now: () => number) {
  const standing = new Map<string, Revocation>();
  const violations: string[] = [];

  return {
    committed(code: string, seq: number): Revocation {
      const revocation: Revocation = { code, seq, committedAt: now(), confirmedAt: NEVER, lostAt: NEVER };
      standing.set(code, revocation);
      return revocation;
    },
    lost(revocation: Revocation): void {
      revocation.lostAt = now();
      if (standing.get(revocation.code) === revocation) standing.delete(revocation.code);
    },
    standing: (code: string): Revocation | null => standing.get(code) ?? null,
    /** @param shownAt true ms of the last sight of the registry that the process has */
    confirmed(revocation: Revocation, by: string | null, shownAt: number): void {
      if (revocation.lostAt < NEVER) {
        if (shownAt >= revocation.lostAt)
          violations.push(
            `${revocation.code} (${revocation.seq}) was confirmed by ${by} though a sight showed another history`,
          );
        return;
      }
      revocation.confirmedAt = Math.min(revocation.confirmedAt, now());
    },
    /** @param ttlMs true ms that a TTL of the instance lasts */
    started(code: string, instance: string, ttlMs: number): Asked {
      const revocation = standing.get(code);
      const startedAt = now();
      const asked: Asked = { code, instance, startedAt, due: null, because: "" };
      if (revocation === undefined) return asked;
      const { confirmedAt, committedAt, seq } = revocation;
      if (confirmedAt <= startedAt) asked.because = `change ${seq} was confirmed at ${confirmedAt}`;
      else if (committedAt + ttlMs < startedAt)
        asked.because = `change ${seq} was committed at ${committedAt}, a TTL before`;
      if (asked.because !== "") asked.due = revocation;
      return asked;
    },
    answered({ code, instance, startedAt, due, because }: Asked, status: number): void {
      if (status !== 302 || due === null || due.lostAt < NEVER) return;
      violations.push(`${instance} answered a request for ${code} of ${startedAt} with the old target: ${because}`);
    },
    late(what: string): void {
      violations.push(what);
    },
    violations: () => violations,
  };
}
