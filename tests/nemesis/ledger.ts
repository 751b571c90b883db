// The book of a run, kept outside of the product: what was called, asked and answered, by one clock. A link that is
// over is judged and leaves the book, so that the book of a long run is no larger than that of a short one.
import { type History, judgeLink, type Rules, type Violation, type Visit, type Word } from "./checker.ts";

/** A link whose history is being written. */
export type Link = Omit<History, "revokedFrom"> & {
  revokedFrom: number | null;
  words: Word[];
  visits: Visit[];
  last: Visit[];
  /** Requests for it that have no answer yet. */
  underWay: number;
};

/** Violations that are kept whole; of further ones the number tells as much. */
const SHOWN = 50;

export type Ledger = ReturnType<typeof createLedger>;

export function createLedger() {
  const open = new Map<string, Link>();
  /** Over, and judged but for what is asked at the end. */
  const closed: Link[] = [];
  const hindered: { from: number; to: number }[] = [];
  const violations: Violation[] = [];
  const failed = new Set<string>();
  const statuses = new Map<number, number>();
  const confirmed = { acknowledged: 0, ttl: 0 };
  /** From the call to the confirmation, in ms, of each revoked link. */
  const times: number[] = [];
  let links = 0;

  function accuse(violation: Violation): void {
    failed.add(violation.code);
    if (violations.length < SHOWN) violations.push(violation);
  }

  const failedLinks = () => [...failed].filter((code) => code !== "").length;

  function judge(link: History, rules: Omit<Rules, "hindered">): void {
    for (const violation of judgeLink(link, { ...rules, hindered })) accuse(violation);
  }

  return {
    add(code: string, target: string): Link {
      const link: Link = { code, target, revokedFrom: null, words: [], visits: [], last: [], underWay: 0 };
      open.set(code, link);
      links += 1;
      return link;
    },
    visited(link: Link, visit: Visit): void {
      link.visits.push(visit);
      statuses.set(visit.status, (statuses.get(visit.status) ?? 0) + 1);
    },
    told(link: Link, word: Word): void {
      const first = word.confirmedBy !== null && !link.words.some(({ confirmedBy }) => confirmedBy !== null);
      link.words.push(word);
      if (!first || word.confirmedBy === null) return;
      confirmed[word.confirmedBy] += 1;
      times.push(word.answeredAt - (link.revokedFrom ?? word.sentAt));
    },
    /** Something that may not be, and that no answer to one link shows. */
    accuse,
    judge,
    /** The write processes or the database are hindered from now on; returns what says until when. */
    hinder(from: number): (to: number) => void {
      const span = { from, to: Number.POSITIVE_INFINITY };
      hindered.push(span);
      return (to) => {
        span.to = to;
      };
    },
    /** Judges a confirmed link that nobody asks for until the end. */
    close(link: Link, confirmedWithinMs: number): void {
      judge(link, { confirmedWithinMs, ended: false });
      open.delete(link.code);
      const word = link.words.find(({ confirmedBy }) => confirmedBy !== null);
      closed.push({ ...link, visits: [], words: word ? [asIfAtOnce(word)] : [] });
    },
    open: (): readonly Link[] => [...open.values()],
    all: (): readonly Link[] => [...closed, ...open.values()],
    failed: () => failed.size,
    tally: () => ({
      ...{ statuses: new Map(statuses), confirmed: { ...confirmed }, times: [...times] },
      // What was not said of one link counts beside the links.
      ...{ passed: links - failedLinks(), failed: failed.size, violations: [...violations] },
    }),
  };
}

const asIfAtOnce = (word: Word): Word => ({ ...word, sentAt: word.answeredAt });
