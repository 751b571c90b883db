// The redirect's server in this process, with and without the front for plain requests: the real parts, links from a table,
// and a clock that stands, so that two of them answer alike to the last byte.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { listen, type RunningServer } from "@linkfence/service-shell";
import { waitFor } from "@linkfence/testkit";
import { createApp } from "../app.ts";
import { createLinkCache } from "../cache/link-cache.ts";
import { createLinkLookup } from "../cache/link-lookup.ts";
import { createLoader } from "../cache/loader.ts";
import { createClickRing } from "../clicks/click-ring.ts";
import type { ClickFacts } from "../domain/click.ts";
import type { LinkRow } from "../domain/entry.ts";
import { createHotPath } from "./hot-path.ts";
import { createOriginReader } from "./origin.ts";
import { createPlainConnections } from "./plain-connections.ts";
import type { PlainReader } from "./plain-request.ts";

const KEEP_ALIVE_MS = 72_000;
const COUNTRY_HEADER = "X_Country";
const ADDRESS_HEADER = "X-Forwarded-For";
const NOW = { mono: 1000, wall: 1_700_000_000_000 };
const CLICKS_MAX = 10_000;

const active = (target: string, remainingMs: number | null = null): LinkRow => ({
  ...{ target, state: "ACTIVE", version: 1, remainingMs, owner: "ann" },
});
/** Every other code is unknown. */
const LINKS: Record<string, LinkRow> = {
  abc: active("https://example.com/?abc#123"),
  long: active(`https://example.com/${"a".repeat(8000)}`),
  expired: active("https://example.com/", -1),
  gone: { target: null, state: "REVOKED", version: 2, remainingMs: null, owner: "ann" },
};

export type PlainWorldOptions = {
  /** `null` leaves the front out; a reader takes the place of its own. */
  read?: PlainReader | null;
  /** Reads a link, in the place of the table. */
  readLink?: (code: string) => Promise<LinkRow | null>;
  keepAliveMs?: number;
  requestTimeoutMs?: number;
};

export type PlainWorld = Awaited<ReturnType<typeof startPlainWorld>>;

/** Starts the server on a port of its own. */
export async function startPlainWorld(options: PlainWorldOptions = {}) {
  const { read, readLink, keepAliveMs = KEEP_ALIVE_MS, requestTimeoutMs } = options;
  const now = () => NOW;
  const cache = createLinkCache({ maxEntries: 100, maxBytes: 1_000_000 });
  const loader = createLoader({
    ...{ cache, now, ttlMs: 1000, negativeTtlMs: 1000, random: () => 0 },
    readLink: readLink ?? (async (code) => LINKS[code] ?? null),
  });
  const lookup = createLinkLookup({ cache, loader, ttlMs: 1000 });
  lookup.synced(NOW);
  const ring = createClickRing(CLICKS_MAX);
  const originOf = createOriginReader({ countryHeader: COUNTRY_HEADER, addressHeader: ADDRESS_HEADER, looksUp: true });
  const hotPath = createHotPath({ lookup, ring, now, debugEntryAge: true, onLoadError: () => {}, originOf });
  const app = createApp({ hotPath, onError: () => {} });
  const plain = createPlainConnections({
    ...{ follow: hotPath.follow, fields: [COUNTRY_HEADER, ADDRESS_HEADER], keepAliveMs },
    ...(read ? { read } : {}),
  });
  const server = await listen(hotPath.handle(app), {
    ...{ port: 0, host: "127.0.0.1", maxConnections: 100, requireHost: false },
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
    ...(read === null ? {} : { owner: plain }),
  });
  return {
    plain,
    server,
    counts: hotPath.counts,
    takeClicks: (): ClickFacts[] => ring.take(CLICKS_MAX),
    open: () => openConnection(server),
    close: (timeoutMs = 0) => server.close(timeoutMs),
  };
}

/** Links whose reads the test answers itself. */
export function createHeldReads() {
  const reads: ((row: LinkRow | null) => void)[] = [];
  return {
    readLink: () => new Promise<LinkRow | null>((answer) => void reads.push(answer)),
    /** Resolves when so many reads are under way. */
    underWay: (count: number) => waitFor(`${count} reads`, () => reads.length === count),
    answer: (target: string) => {
      for (const read of reads.splice(0)) read(active(target));
    },
  };
}

/** Opens a connection, and takes hold of its other end. */
async function openConnection({ port, server }: RunningServer) {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  let answer = "";
  socket.setEncoding("latin1").on("data", (text) => {
    answer += text;
  });
  // What is written into a connection that has ended is answered with a reset.
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "ECONNRESET" && error.code !== "EPIPE") throw error;
  });
  const ended = once(socket, "end").catch(() => {});
  const closed = once(socket, "close");
  const [other] = await accepted;
  let sent = 0;
  return {
    socket,
    other,
    answer: () => answer,
    /** Sends bytes, and resolves when the other side has read them. */
    async send(text: string): Promise<void> {
      if (other.destroyed || !socket.writable) return;
      socket.write(text, "latin1");
      sent += text.length;
      await waitFor("the bytes to be read", () => other.destroyed || other.bytesRead >= sent);
    },
    /** Resolves with all that came when the other side has ended, or with that when so many answers have come. */
    async answers(count: number): Promise<string> {
      await waitFor(`${count} answers`, () => (answer.match(/^HTTP\/1\.1 /gm)?.length ?? 0) >= count);
      return answer;
    },
    async all(): Promise<string> {
      await Promise.race([ended, closed]);
      socket.destroy();
      await closed;
      return answer;
    },
  };
}
