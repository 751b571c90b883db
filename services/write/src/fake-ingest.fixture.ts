// A click-ingest that the test controls: it answers what it is asked with the clicks that the test gave it.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ClickRecord, QUARTER_MS } from "@linkfence/contracts";

export type FakeIngest = Awaited<ReturnType<typeof startFakeIngest>>;
/** Takes the place of the answers; for bad moods. */
type Mood = (response: ServerResponse) => void;

const NOBODY = { items: [], others: 0 };

/** Starts it, in a good mood and without clicks. */
export async function startFakeIngest() {
  const asked: string[] = [];
  /** Times of people's clicks by code, in ms. */
  const clicks = new Map<string, number[]>();
  const state: { mood: Mood | null; records: ClickRecord[] } = { mood: null, records: [] };

  function sumsOf(codes: readonly string[], query: URLSearchParams) {
    const times = codes.flatMap((code) => clicks.get(code) ?? []);
    let edge = Number(query.get("start"));
    const series = (query.get("steps") ?? "").split(",").map((step) => {
      const from = edge;
      edge += Number(step) * QUARTER_MS;
      return [times.filter((at) => at >= from && at < edge).length, 0, 0];
    });
    return { total: series.reduce((all, [people = 0]) => all + people, 0), bots: 0, prefetches: 0, series };
  }

  function answer(target: string) {
    const { pathname, searchParams } = new URL(target, "http://ingest");
    const [, , , code = "", what] = pathname.split("/");
    if (what === "clicks") {
      const before = searchParams.get("before");
      const from = before === null ? 0 : state.records.findIndex(({ id }) => id === before) + 1;
      return { items: state.records.slice(from, from + Number(searchParams.get("limit"))) };
    }
    const dropped = [
      { reason: "killed", total: 1000 },
      { reason: "killed-unknown", total: 1 },
      { reason: "ring-full", total: 3 },
    ];
    if (pathname === "/v1/stats") {
      const links = [...clicks.keys()].map((name) => {
        const { total, bots, prefetches } = sumsOf([name], searchParams);
        return { code: name, total, bots, prefetches };
      });
      return { ...sumsOf([...clicks.keys()], searchParams), links, dropped };
    }
    const sums = sumsOf([code], searchParams);
    const browser = { items: [{ value: "Firefox", total: sums.total }], others: 0 };
    const top = { referrer: NOBODY, browser, os: NOBODY, device: NOBODY, country: NOBODY };
    return { code, ...sums, top: searchParams.get("top") === "0" ? null : top, dropped };
  }

  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (state.mood) state.mood(response);
    else response.end(JSON.stringify(answer(request.url ?? "")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    state,
    /** People follow a link. */
    click(code: string, ...times: number[]): void {
      clicks.set(code, [...(clicks.get(code) ?? []), ...times]);
    },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}
