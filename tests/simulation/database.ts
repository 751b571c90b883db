// The database: what is committed, in order, and what becomes of it when the server crashes or a standby takes over.
// Each function is one statement. It is carried out at the moment of the call, or takes its time; `reply` is called at
// its commit, and never where the server went away before.
import type { Change, SyncAnswer, SyncRequest } from "@linkfence/link-feed";
import type { LinkRow } from "../../services/redirect/src/domain/entry.ts";
import type { Instance, Sight } from "../../services/write/src/domain/registry.ts";
import type { RevokedCode } from "../../services/write/src/store/links.ts";
import type { Dice } from "./dice.ts";
import type { Judge, Revocation } from "./judge.ts";
import type { Kernel } from "./kernel.ts";

/** A commit that does not wait for the disk is on it after three rounds of the WAL writer, 200 ms each. */
const LAZY_COMMIT_MS = 600;

type Link = { version: number; revocation: Revocation | null };
/** How to take a commit back, and whether the server's disk had it before anybody heard of it. */
type Commit = { undo: () => void; durable: boolean; at: number };
type Row = Instance & { lockedBy: number };
export type Sighted = Omit<Sight, "sentAt" | "receivedAt">;
export type Revoked = { answer: RevokedCode[]; revocations: Revocation[] };

export type DatabaseOptions = {
  kernel: Kernel;
  dice: Dice;
  judge: Judge;
  codes: readonly string[];
  /** Rows in one read of the log at the most. */
  pageLimit: number;
  /** Mean true ms of a transaction that takes more than an instant. */
  meanMs: number;
  /** False for the twin that takes the lock after the numbers. */
  lockFirst: boolean;
  /** True for the twin whose renewals the database counts. */
  countsRenewals: boolean;
  /** Told of a commit that others are told of. */
  notify: (channel: "link_change" | "instance_ack") => void;
};

export type Database = ReturnType<typeof createDatabase>;

export function createDatabase(options: DatabaseOptions) {
  const { kernel, dice, judge, codes, pageLimit, meanMs, lockFirst, countsRenewals, notify } = options;
  const links = new Map<string, Link>(codes.map((code) => [code, { version: 1, revocation: null }]));
  const rows = new Map<string, Row>();
  const settled = new Set(["e1"]);
  let log: Change[] = [];
  let commits: Commit[] = [];
  let timeline = 1;
  let server = 1;
  let up = true;
  let nextSeq = 1;
  let lockFreeAt = 0;

  const epoch = () => `e${timeline}`;
  const head = () => log.at(-1)?.seq ?? 0;

  function commit(undo: () => void, durable = true): void {
    commits.push({ undo, durable, at: kernel.now() });
  }

  /** Goes on after a while, unless the server went away meanwhile. */
  function later(at: number, act: () => void): void {
    const begun = server;
    kernel.at(at, () => {
      if (server === begun) act();
    });
  }

  /** How long a transaction takes: mostly an instant. */
  const span = () => (dice.chance(0.2) ? dice.delay(dice.chance(0.2) ? meanMs * 10 : meanMs) : 0);

  function drawSeq(): number {
    const seq = Math.max(nextSeq, head() + 1);
    nextSeq = seq + 1;
    return seq;
  }

  function revoke(wanted: readonly string[], reply: (revoked: Revoked) => void): void {
    if (lockFirst) {
      const locked = Math.max(kernel.now(), lockFreeAt);
      lockFreeAt = locked + span();
      later(lockFreeAt, () => reply(carryOut(wanted, drawSeq)));
      return;
    }
    const drawn = wanted.map(drawSeq);
    later(kernel.now() + span(), () => reply(carryOut(wanted, () => drawn.shift() as number)));
  }

  function carryOut(wanted: readonly string[], draw: () => number): Revoked {
    const revocations: Revocation[] = [];
    const answer = wanted.map((code): RevokedCode => {
      const link = links.get(code) as Link;
      const isNew = link.revocation === null;
      const revocation = link.revocation ?? change(code, link, draw());
      revocations.push(revocation);
      const { seq } = revocation;
      if (!isNew) return { code, outcome: "already-revoked", version: -1, seq, epoch: epoch() };
      return { code, outcome: "revoked", version: link.version, seq, epoch: epoch() };
    });
    if (answer.some(({ outcome }) => outcome === "revoked")) notify("link_change");
    return { answer, revocations };
  }

  function change(code: string, link: Link, seq: number): Revocation {
    link.version += 1;
    const revocation = judge.committed(code, seq);
    link.revocation = revocation;
    const row = { seq, code, version: link.version };
    log = [...log, row].sort((a, b) => a.seq - b.seq);
    commit(() => {
      link.version -= 1;
      link.revocation = null;
      log = log.filter((other) => other !== row);
      judge.lost(revocation);
    });
    return revocation;
  }

  function insert(row: Row): void {
    rows.set(row.id, row);
  }

  function remove(row: Row): void {
    rows.delete(row.id);
    commit(() => insert(row));
  }

  function sync({ instance, from, renewal }: SyncRequest, reply: (answer: SyncAnswer) => void): void {
    const row = rows.get(instance);
    const before = row && renewal ? row.appliedSeq : 0;
    if (row && renewal) row.lockedBy += 1;
    const readLog = () => {
      const first = from ?? head();
      const changes = log.filter(({ seq }) => seq >= first).slice(0, pageLimit);
      if (row && renewal) renew(row, renewal, renewal.appliedSeq > before);
      reply({ registered: row !== undefined, page: { epoch: epoch(), head: head(), changes, limit: pageLimit } });
    };
    const ms = span();
    if (ms === 0) readLog();
    else later(kernel.now() + ms, readLog);
  }

  function renew(row: Row, renewal: NonNullable<SyncRequest["renewal"]>, isAcknowledgement: boolean): void {
    const { appliedSeq, epoch: heard, renewals } = row;
    row.lockedBy -= 1;
    const count = countsRenewals ? renewals + 1 : renewal.count;
    if (count <= renewals) return;
    row.appliedSeq = renewal.appliedSeq;
    row.epoch = renewal.epoch;
    row.renewals = count;
    commit(() => Object.assign(row, { appliedSeq, epoch: heard, renewals }), renewal.lasting);
    if (isAcknowledgement && [...rows.values()].every((other) => other.appliedSeq > appliedSeq)) notify("instance_ack");
  }

  function takeBack(count: number): void {
    for (const { undo } of commits.splice(commits.length - count).reverse()) undo();
  }

  /** Ends every statement under way, and answers none for so many ms. */
  function goAway(ms: number): void {
    server += 1;
    up = false;
    lockFreeAt = 0;
    for (const row of rows.values()) row.lockedBy = 0;
    const gone = server;
    kernel.at(kernel.now() + ms, () => {
      if (server === gone) up = true;
    });
  }

  return {
    isUp: () => up,
    /** Changes whenever every connection is cut. */
    server: () => server,
    revoke,
    sync,
    readLink(code: string, reply: (row: LinkRow | null) => void): void {
      const { version, revocation } = links.get(code) as Link;
      const active = revocation === null;
      const target = active ? "https://example.com/" : null;
      reply({ target, state: active ? "ACTIVE" : "REVOKED", version, remainingMs: null, owner: "ann" });
    },
    findRevocation(
      code: string,
      reply: (found: { seq: number; epoch: string; revocation: Revocation } | null) => void,
    ) {
      const { revocation } = links.get(code) as Link;
      reply(revocation && { seq: revocation.seq, epoch: epoch(), revocation });
    },
    register({ id, address, ttlMs }: { id: string; address: string; ttlMs: number }, reply: () => void): void {
      later(kernel.now() + span(), () => {
        if (!rows.has(id)) {
          insert({ id, address, ttlMs, followsFeed: true, epoch: epoch(), appliedSeq: 0, renewals: 0, lockedBy: 0 });
          commit(() => void rows.delete(id));
        }
        reply();
      });
    },
    deregister(id: string, reply: () => void): void {
      const row = rows.get(id);
      if (row) remove(row);
      reply();
    },
    look(reply: (sighted: Sighted) => void): void {
      const instances = [...rows.values()].map((row): Instance => ({ ...row }));
      reply({ epoch: epoch(), settled: settled.has(epoch()), head: head(), instances });
    },
    settle(wanted: string, reply: (current: boolean) => void): void {
      const isCurrent = wanted === epoch();
      if (isCurrent && !settled.has(wanted)) {
        settled.add(wanted);
        commit(() => void settled.delete(wanted));
      }
      reply(isCurrent);
    },
    /** A row that is being renewed is waited for, and has another count then. */
    remove(dead: readonly { id: string; renewals: number }[], reply: (gone: string[]) => void): void {
      const gone = dead.flatMap(({ id, renewals }) => {
        const row = rows.get(id);
        if (row?.renewals !== renewals || row.lockedBy > 0) return [];
        remove(row);
        return [id];
      });
      reply(gone);
    },
    /** Removes the oldest changes, but for so many. */
    trim(kept: number): void {
      const gone = log.slice(0, Math.max(0, log.length - kept));
      if (gone.length === 0) return;
      log = log.slice(gone.length);
      commit(() => {
        log = [...gone, ...log];
      });
    },
    /** The server loses what its disk has not, and is back with the same history after so many ms. */
    crash(ms: number): void {
      const since = kernel.now() - LAZY_COMMIT_MS;
      let lazy = 0;
      while (commits.length > lazy) {
        const { durable, at } = commits[commits.length - 1 - lazy] as Commit;
        if (durable || at < since) break;
        lazy += 1;
      }
      takeBack(dice.whole(0, lazy));
      goAway(ms);
    },
    /** A standby that lacks the last commits takes over after so many ms, and may give their numbers out again. */
    failOver(lost: number, ms: number): void {
      takeBack(Math.min(lost, commits.length));
      commits = [];
      timeline += 1;
      if (dice.chance(0.7)) nextSeq = head() + 1;
      goAway(ms);
    },
  };
}
