// Creates links, has every process take them into memory, revokes them in one of the ways that there are, and asks until
// they are confirmed.
import { setTimeout as pause } from "node:timers/promises";
import type { Dice } from "../simulation/dice.ts";
import type { Answer, Api } from "./api.ts";
import type { Ledger, Link } from "./ledger.ts";
import type { Load } from "./load.ts";

type Effective = { confirmed: boolean; by: "acknowledged" | "ttl" | null; effectiveWithinMs?: number };
type Told = { effective: Effective };
type Created = { results: { status: number; problem?: { code: string } }[] };
type RevokedBatch = Told & { results: { status: number }[] };

/** Between two calls that are about the same, so that a database that is away is not stormed. */
export const PAUSE_MS = 50;
/** How long callers wait, from not at all to longer than any TTL of a run. */
const TIMEOUTS_MS = [0, 50, 300, 1000, 5000];
const BATCH_MAX = 5;
/** For a process that is stopped or cut off nobody waits longer than this before a link is revoked. */
const WARM_MS = 300;
/** Time for requests of the load before the revocation. */
const WARMED_MS = [100, 700] as const;

export type RevokerOptions = {
  name: string;
  api: Api;
  load: Load;
  ledger: Ledger;
  dice: Dice;
  now: () => number;
  /** No further links are begun with from then on. */
  over: AbortSignal;
  /** Nothing at all is waited for from then on. */
  giveUp: AbortSignal;
  confirmedWithinMs: number;
  /** How long a link is asked for after its confirmation. */
  keepMs: number;
  counts: { revocations: number; unconfirmed: number };
};

/** Creates links, waiting until it is known that they are there. */
export async function createLinks(api: Api, ledger: Ledger, codes: readonly string[], giveUp: AbortSignal) {
  const links = codes.map((alias) => ({ alias, target: `https://example.com/${alias}` }));
  for (;;) {
    const made = await api.call<Created>("POST", "/v1/links:batch", { links });
    // Where an answer was lost they may be there already.
    if (made?.json.results.every(({ status, problem }) => status === 201 || problem?.code === "alias-taken"))
      return links.map(({ alias, target }) => ledger.add(alias, target));
    if (giveUp.aborted) return [];
    await pause(PAUSE_MS);
  }
}

/** Goes on until `over`, and then until what it has begun is confirmed. */
export async function runRevoker(options: RevokerOptions): Promise<void> {
  const { name, api, load, ledger, dice, over, giveUp } = options;
  for (let round = 1; !over.aborted; round += 1) {
    const codes = Array.from({ length: dice.whole(1, BATCH_MAX) }, (_, index) => `${name}-${round}-${index}`);
    const links = await createLinks(api, ledger, codes, giveUp);
    if (links.length === 0) return;
    for (const link of links) load.heat(link);
    await pause(dice.between(...WARMED_MS));
    await Promise.all(links.map((link) => load.askAll(link, WARM_MS)));
    await revoke(options, links);
    void retire(options, links);
  }
}

/** The links are asked for a while longer, and then their histories are judged. */
async function retire({ load, ledger, keepMs, confirmedWithinMs, giveUp }: RevokerOptions, links: readonly Link[]) {
  await pause(keepMs, undefined, { signal: giveUp }).catch(() => {});
  for (const link of links) load.drop(link);
  while (links.some(({ underWay }) => underWay > 0) && !giveUp.aborted) await pause(PAUSE_MS);
  // What is still open then is judged at the end.
  if (!giveUp.aborted) for (const link of links) ledger.close(link, confirmedWithinMs);
}

async function revoke(options: RevokerOptions, links: readonly Link[]): Promise<void> {
  const { api, load, ledger, dice, now, giveUp, counts } = options;
  counts.revocations += links.length;
  const codes = links.map(({ code }) => code);
  const one = codes[0] ?? "";
  let known = false;

  /** Takes in what was said of all of them. Returns whether they are confirmed. */
  function hear({ json, sentAt, answeredAt }: Answer<Told>, about: readonly Link[]): boolean {
    const { confirmed, by, effectiveWithinMs = null } = json.effective;
    known = true;
    for (const link of about)
      ledger.told(link, { sentAt, answeredAt, confirmedBy: confirmed ? by : null, withinMs: effectiveWithinMs });
    if (!confirmed) counts.unconfirmed += 1;
    return confirmed;
  }

  async function look(): Promise<boolean> {
    const confirmed = links.map(async (link) => {
      const answer = await api.call<Told>("GET", `/v1/links/${link.code}/revocation`);
      return answer !== null && hear(answer, [link]);
    });
    return (await Promise.all(confirmed)).every(Boolean);
  }

  async function call(committed: boolean): Promise<boolean> {
    const timeoutMs = dice.pick(TIMEOUTS_MS);
    const query = committed ? "?wait=committed" : `?wait=effective&timeoutMs=${timeoutMs}`;
    for (const link of links) link.revokedFrom ??= now();
    if (links.length === 1) {
      const answer = await api.call<Told>("DELETE", `/v1/links/${one}${query}`, undefined, timeoutMs);
      return answer !== null && hear(answer, links);
    }
    const answer = await api.call<RevokedBatch>("POST", `/v1/links:revoke${query}`, { codes }, timeoutMs);
    if (answer === null) return false;
    const lost = answer.json.results.find(({ status }) => status !== 200);
    if (lost) ledger.accuse({ rule: "no answer that there may be", code: one, what: `revoked: ${lost.status}` });
    return hear(answer, links);
  }

  let confirmed = await call(dice.chance(0.2));
  while (!confirmed && !giveUp.aborted) {
    await pause(PAUSE_MS);
    confirmed = known && dice.chance(0.5) ? await look() : await call(false);
  }
  // The first requests after a confirmation are those that it is worth for.
  for (const link of links) void load.askAll(link, 0);
}
