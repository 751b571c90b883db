// The whole product on real targets: created in batches, followed on two redirect processes, partly revoked, counted.
import { readFile } from "node:fs/promises";
import { parseUrl } from "@linkfence/contracts";
import {
  createApiClient,
  createHttpClient,
  type HttpClient,
  mapConcurrently,
  readMetric,
  type Stack,
  startStack,
} from "@linkfence/testkit";
import { spellingChange } from "./encoding-change.ts";
import type { EvidenceCase, Report } from "./report.ts";

const SAMPLE = new URL("./real-urls.sample.txt", import.meta.url);
const BATCH = 1000;
/** Requests under way at once: enough to keep one process busy, few enough for two cores. */
const WIDTH = 32;
const POLL_MS = 100;
const QUERY_TIMEOUT_MS = 1000;
/** What is sent is stored within a second or so; this only ends a broken run. */
const SETTLE_TIMEOUT_MS = 60_000;

type Created = { typed: string; code: string; target: string };
type BatchItem = { status: number; link?: { code: string; target: string } };

export const realUrls: EvidenceCase = {
  id: "real-urls",
  shows:
    "real targets come back byte for byte, a batch of revocations takes effect everywhere, and every click is counted once",
  readsFile: true,
  async run(report, { file }) {
    const text = await readFile(file ?? SAMPLE, "utf8");
    const typed = text.split(/\r?\n/).filter((line) => line !== "");
    const stack = await startStack({
      redirects: 2,
      redirectEnv: { POLL_INTERVAL_MS: String(POLL_MS), QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS) },
    });
    const http = createHttpClient(WIDTH);
    try {
      await new Run(report, stack, http).all(typed);
    } finally {
      http.close();
      await stack.stop();
    }
  },
};

class Run {
  readonly #report: Report;
  readonly #stack: Stack;
  readonly #http: HttpClient;
  readonly #api: ReturnType<typeof createApiClient>;
  /** Redirects answered to a GET, by code. */
  readonly #followed = new Map<string, number>();

  constructor(report: Report, stack: Stack, http: HttpClient) {
    this.#report = report;
    this.#stack = stack;
    this.#http = http;
    this.#api = createApiClient(http, stack.write.url, stack.adminKey);
  }

  async all(typed: readonly string[]): Promise<void> {
    const created = await this.#create(typed);
    this.#compareSpelling(created);
    await this.#followAll(created);
    const revoked = created.slice(0, Math.min(BATCH, Math.ceil(created.length / 20)));
    await this.#revoke(revoked);
    await this.#followRest(created.slice(revoked.length));
    await this.#count();
  }

  async #create(typed: readonly string[]): Promise<Created[]> {
    const startedAt = performance.now();
    const created: Created[] = [];
    const refused: string[] = [];
    for (let first = 0; first < typed.length; first += BATCH) {
      const part = typed.slice(first, first + BATCH);
      const body = { links: part.map((target) => ({ target })) };
      const { json } = await this.#api<{ results: BatchItem[] }>("POST", "/v1/links:batch", body);
      json.results.forEach(({ link }, index) => {
        const target = part[index] ?? "";
        if (link) created.push({ typed: target, ...link });
        else refused.push(target);
      });
    }
    this.#report.check("targets created or refused by a rule", created.length + refused.length, typed.length);
    this.#report.check(
      "refused although they break no rule",
      refused.filter((target) => !breaksARule(target)),
      [],
    );
    for (const target of refused) this.#report.note(`refused: ${target}`);
    this.#report.check("distinct codes", new Set(created.map(({ code }) => code)).size, created.length);
    this.#report.note(`${created.length} links in ${ms(startedAt)} ms`);
    return created;
  }

  #compareSpelling(created: readonly Created[]): void {
    const changes = new Map<string, Created[]>();
    for (const link of created) {
      const kind = spellingChange(link.typed, link.target);
      if (kind !== null) changes.set(kind, [...(changes.get(kind) ?? []), link]);
    }
    this.#report.check("stored targets that differ by more than spelling", changes.get("other")?.length ?? 0, 0);
    for (const [kind, links] of changes) {
      this.#report.note(`${links.length} differ by ${kind}`);
      for (const { typed, target } of links)
        this.#report.note(`  ${JSON.stringify(typed)} -> ${JSON.stringify(target)}`);
    }
  }

  async #followAll(created: readonly Created[]): Promise<void> {
    const startedAt = performance.now();
    const wrong = await this.#countWrong(created, (link, index) => this.#leadsTo(link, index % 2));
    this.#report.check("links that do not lead to their target, byte for byte", wrong, 0);
    this.#report.note(`${created.length} links followed in ${ms(startedAt)} ms`);
  }

  async #revoke(links: readonly Created[]): Promise<void> {
    for (const redirect of [0, 1]) await this.#countWrong(links, (link) => this.#leadsTo(link, redirect));
    const codes = links.map(({ code }) => code);
    const windows = Promise.all([0, 1].map((redirect) => this.#untilGone(codes.at(-1) ?? "", redirect)));
    const { json } = await this.#api<{ results: { outcome?: string }[] }>("POST", "/v1/links:revoke?wait=committed", {
      codes,
    });
    const revoked = json.results.filter(({ outcome }) => outcome === "revoked").length;
    this.#report.check("revoked in one call", revoked, codes.length);
    // The last change is written just before the commit, so the window is measured from a little too early.
    const [last] = await this.#stack.main.sql`SELECT extract(epoch FROM max(changed_at)) * 1000 AS ms FROM link_change`;
    const slowest = Math.max(...(await windows)) - Number(last?.ms);
    const bound = POLL_MS + QUERY_TIMEOUT_MS;
    this.#report.check(`first 410 everywhere within poll + query deadline (${bound} ms)`, slowest <= bound, true);
    this.#report.note(`first 410 on the slower process ${slowest.toFixed(1)} ms after the last change was written`);
    const wrong = await this.#countWrong(
      links,
      async ({ code }, index) => (await this.#get(code, index % 2)).status === 410,
    );
    const others = await this.#countWrong(
      links,
      async ({ code }, index) => (await this.#get(code, (index + 1) % 2)).status === 410,
    );
    this.#report.check("revoked links that are not 410 on either process", wrong + others, 0);
    const [row] = await this.#stack.main.sql`SELECT count(*)::int AS changes FROM link_change`;
    this.#report.check("change rows", row?.changes, codes.length);
  }

  async #followRest(links: readonly Created[]): Promise<void> {
    const wrong = await this.#countWrong(links, (link, index) => this.#leadsTo(link, (index + 1) % 2));
    this.#report.check("other links that do not lead to their target any more", wrong, 0);
  }

  /** Every redirect is in the statistics database, under its code, once. */
  async #count(): Promise<void> {
    const sent = [...this.#followed.values()].reduce((sum, count) => sum + count, 0);
    const startedAt = performance.now();
    let stored = 0;
    while (stored < sent && performance.now() - startedAt < SETTLE_TIMEOUT_MS) {
      const [row] = await this.#stack.stats.sql`SELECT count(*)::int AS stored FROM click`;
      stored = row?.stored as number;
    }
    this.#report.check("clicks stored = redirects answered", stored, sent);
    const rows = await this.#stack.stats.sql<{ code: string; clicks: number; distinct: number }[]>`
      SELECT code, count(*)::int AS clicks, count(DISTINCT click_id)::int AS distinct FROM click GROUP BY code`;
    const differing = rows.filter(
      ({ code, clicks, distinct }) => this.#followed.get(code) !== clicks || clicks !== distinct,
    );
    this.#report.check("codes whose clicks differ", differing.length + Math.abs(rows.length - this.#followed.size), 0);
    const dropped = await Promise.all(
      this.#stack.redirects.map((redirect) =>
        readMetric(redirect, 'linkfence_clicks_dropped_total{reason="ring-full"}'),
      ),
    );
    this.#report.check("clicks dropped", dropped, [0, 0]);
    this.#report.note(`the last click was stored ${ms(startedAt)} ms after the last redirect`);
  }

  /** Follows a link until it is gone. Returns when, in ms since 1970, by the clock that the database shares. */
  async #untilGone(code: string, redirect: number): Promise<number> {
    const startedAt = performance.now();
    while (performance.now() - startedAt < SETTLE_TIMEOUT_MS) {
      const { status } = await this.#get(code, redirect);
      if (status === 410) return Date.now();
    }
    throw new Error("a revoked link is still followed");
  }

  async #leadsTo({ code, target }: Created, redirect: number): Promise<boolean> {
    const { status, location } = await this.#get(code, redirect);
    return status === 302 && location === target;
  }

  async #get(code: string, redirect: number): Promise<{ status: number; location: string | undefined }> {
    const base = this.#stack.redirects[redirect]?.url ?? "";
    const { status, headers } = await this.#http.send(base, `/${code}`);
    if (status === 302) this.#followed.set(code, (this.#followed.get(code) ?? 0) + 1);
    return { status, location: headers.location };
  }

  async #countWrong(
    links: readonly Created[],
    isRight: (link: Created, index: number) => Promise<boolean>,
  ): Promise<number> {
    const right = await mapConcurrently(links, WIDTH, isRight);
    return right.filter((held) => !held).length;
  }
}

/** The rules that real input breaks: an empty label in the host, credentials, backslashes, blanks, no URL at all. */
function breaksARule(target: string): boolean {
  const authority = /^[^:]*:\/\/([^/?#]*)/.exec(target)?.[1] ?? "";
  const host = authority.replace(/:\d*$/, "");
  return parseUrl(target) === null || /[@\\]/.test(authority) || /^\.|\.\./.test(host) || /^\s|\s$/.test(target);
}

function ms(startedAt: number): string {
  return (performance.now() - startedAt).toFixed(0);
}
