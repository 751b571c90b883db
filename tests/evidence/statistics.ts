// What is told of clicks: on which day of a time zone they were, and which of them were people's; and what becomes of
// everything else while it cannot be told.
import {
  createApiClient,
  createHttpClient,
  type FaultMode,
  mapConcurrently,
  type Stack,
  type StackOptions,
  startFaultProxy,
  startStack,
  testServerUrl,
  waitFor,
} from "@linkfence/testkit";
import { storeClicks } from "../../services/click-ingest/src/test-support/stored-clicks.ts";
import type { EvidenceCase, Report } from "./report.ts";

const LINK = "measured";
const QUARTER_MS = 900_000;
/** So that a deadline is soon over. */
const QUICK_INGEST = { QUERY_TIMEOUT_MS: "500" };

type Day = { start: string; total: number };
type Stats = { total: number; bots: number; prefetches: number; series: Day[] };
type Api = ReturnType<typeof createApiClient>;
type World = { stack: Stack; api: Api; statsOf: (query: string) => Promise<Stats> };

/** Runs `use` on the whole product, with one link. */
async function withProduct(options: StackOptions, use: (world: World) => Promise<void>): Promise<void> {
  const stack = await startStack(options);
  const http = createHttpClient();
  try {
    const api = createApiClient(http, stack.write.url, stack.adminKey);
    await api("POST", "/v1/links", { target: "https://example.com/", alias: LINK });
    const statsOf = async (query: string) => (await api<Stats>("GET", `/v1/links/${LINK}/stats?${query}`)).json;
    await use({ stack, api, statsOf });
  } finally {
    http.close();
    await stack.stop();
  }
}

/** Zones, and three days of each around a change of its clocks; Nepal has none, and its midnight at a quarter of UTC's hours. */
const ZONES = [
  { zone: "Europe/Berlin", from: "2026-03-28", to: "2026-03-31" },
  { zone: "America/New_York", from: "2026-03-07", to: "2026-03-10" },
  { zone: "Australia/Lord_Howe", from: "2026-04-04", to: "2026-04-07" },
  { zone: "Africa/Cairo", from: "2026-04-23", to: "2026-04-26" },
  { zone: "Asia/Kathmandu", from: "2026-03-28", to: "2026-03-31" },
];

/** One click for each quarter of an hour from two days before the first of all those days to two days after the last. */
async function clickEachQuarter({ stats }: Stack): Promise<void> {
  const [from, to] = [Date.parse("2026-03-05T00:00Z"), Date.parse("2026-04-28T00:00Z")];
  const times = Array.from({ length: (to - from) / QUARTER_MS }, (_, n) => from + n * QUARTER_MS + (n % 7) * 1000);
  await storeClicks(
    stats,
    times.map((at) => ({ at, code: LINK })),
  );
}

/** What PostgreSQL's own time zones say of the stored clicks. */
async function countByDate({ stats }: Stack, { zone, from, to }: (typeof ZONES)[number]): Promise<number[]> {
  const rows = await stats.sql<{ count: number }[]>`
    SELECT count(*)::int AS count
      FROM (SELECT (clicked_at AT TIME ZONE ${zone})::date AS date FROM click WHERE code = ${LINK}) AS clicks
     WHERE date >= ${from}::text::date AND date < ${to}::text::date GROUP BY date ORDER BY date`;
  return rows.map(({ count }) => count);
}

export const t1: EvidenceCase = {
  id: "T1",
  shows:
    "days of a time zone have 23 to 25 hours where its clocks change, and each click is counted on the day that its zone's clocks showed",
  async run(report) {
    await withProduct({ redirects: 1 }, async ({ stack, statsOf }) => {
      await clickEachQuarter(stack);
      for (const zone of ZONES) {
        const { series, total } = await statsOf(`from=${zone.from}&to=${zone.to}&timezone=${zone.zone}`);
        const counts = series.map((day) => day.total);
        report.check(`clicks by day in ${zone.zone}`, counts, await countByDate(stack, zone));
        report.check(
          "their sum",
          total,
          counts.reduce((sum, count) => sum + count, 0),
        );
        report.figure(`${zone.zone}: days of ${counts.map((count) => count / 4).join(", ")} hours`);
      }
    });
  },
};

export const t1c: EvidenceCase = {
  id: "T1c",
  shows: "days of UTC under a zone's dates have the wrong clicks, and miss that a day has more or less than 24 hours",
  control: true,
  async run(report) {
    await withProduct({ redirects: 1 }, async ({ stack, statsOf }) => {
      await clickEachQuarter(stack);
      for (const zone of ZONES.slice(0, 4)) {
        const { series } = await statsOf(`from=${zone.from}&to=${zone.to}&timezone=UTC`);
        const [right, found] = [await countByDate(stack, zone), series.map((day) => day.total)];
        report.check(`days of UTC are the days of ${zone.zone}`, String(found) === String(right), false);
      }
    });
  },
};

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0";
const PREVIEWERS = [
  "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.example/)",
  "WhatsApp/2.23.20.0",
];
const PEOPLE = 5;

/** People follow the link, previewers fetch it, and all of them get the same answer. Resolves when all are stored. */
async function followAndPreview(report: Report, { stack, api }: World): Promise<void> {
  const [redirect] = stack.redirects;
  const agents = [...Array<string>(PEOPLE).fill(BROWSER), ...PREVIEWERS];
  const http = createHttpClient();
  const statuses = await mapConcurrently(agents, 4, async (agent) => {
    const headers = { "User-Agent": agent };
    return (await http.send(redirect?.url ?? "", `/${LINK}`, { headers })).status;
  });
  http.close();
  report.check("redirects", statuses, Array(agents.length).fill(302));
  await waitFor("all clicks to be stored", async () => {
    const { json } = await api<{ items: unknown[] }>("GET", `/v1/links/${LINK}/clicks`);
    return json.items.length === agents.length;
  });
}

export const t2: EvidenceCase = {
  id: "T2",
  shows:
    "previewers of social networks and messengers get the same redirect as people, and are counted apart from them: in the totals, in the series and of the values",
  async run(report) {
    await withProduct({}, async (world) => {
      await followAndPreview(report, world);
      const { total, bots, prefetches, series, ...rest } = await world.statsOf("");
      report.check("people, bots and prefetches", [total, bots, prefetches], [PEOPLE, PREVIEWERS.length, 0]);
      report.check(
        "the days of the series",
        series.reduce((sum, day) => sum + day.total, 0),
        PEOPLE,
      );
      const { top } = rest as unknown as { top: { browsers: unknown } };
      report.check("browsers", top.browsers, { items: [{ value: "Firefox", total: PEOPLE }], others: 0 });
    });
  },
};

export const t2c: EvidenceCase = {
  id: "T2c",
  shows: "counting the stored clicks of a link without looking at who they are of gives nearly twice as many people",
  control: true,
  async run(report) {
    await withProduct({}, async (world) => {
      await followAndPreview(report, world);
      const [row] = await world.stack.stats.sql<{ n: number }[]>`
        SELECT count(*)::int AS n FROM click WHERE code = ${LINK}`;
      report.check("clicks counted", row?.n, PEOPLE + PREVIEWERS.length);
    });
  },
};

const STATISTICS = [`/v1/links/${LINK}/stats`, `/v1/links/${LINK}/clicks`, "/v1/stats"];

export const t3: EvidenceCase = {
  id: "T3",
  shows:
    "with the statistics database refusing, hanging or locked, the three calls for statistics are 503 within their deadline, and nothing else is",
  async run(report) {
    const proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
    try {
      await withProduct({ ingestEnv: QUICK_INGEST, through: { stats: proxy.through } }, async (world) => {
        for (const mode of ["refuse", "hang"] as const) await judgeCutOff(report, world, { proxy, mode });
        await world.stack.stats.sql.begin(async (sql) => {
          await sql`LOCK TABLE click, click_hour, owner_hour IN ACCESS EXCLUSIVE MODE`;
          await judgeCalls(report, world, "locked");
        });
        await judgeRecovery(report, world);
      });
    } finally {
      await proxy.close();
    }
  },
};

type Cut = { proxy: Awaited<ReturnType<typeof startFaultProxy>>; mode: FaultMode };

async function judgeCutOff(report: Report, world: World, { proxy, mode }: Cut): Promise<void> {
  proxy.set(mode);
  await judgeCalls(report, world, mode);
  proxy.set("pass");
  proxy.reset();
  await judgeRecovery(report, world);
}

async function judgeCalls(report: Report, { stack, api }: World, state: string): Promise<void> {
  const startedAt = performance.now();
  const answers = await Promise.all(STATISTICS.map((path) => api<{ code: string }>("GET", path)));
  const took = performance.now() - startedAt;
  report.check(
    `${state}: statistics`,
    answers.map(({ status, json }) => [status, json.code]),
    STATISTICS.map(() => [503, "statistics-unavailable"]),
  );
  const others = [
    await api("POST", "/v1/links", { target: "https://example.com/" }),
    await api("GET", `/v1/links/${LINK}`),
    await api("GET", "/v1/links"),
    await api("GET", "/v1/changes"),
  ];
  report.check(
    "other calls",
    others.map(({ status }) => status),
    [201, 200, 200, 200],
  );
  const followed = await fetch(`${stack.redirects[0]?.url}/${LINK}`, { redirect: "manual" });
  report.check("a redirect", followed.status, 302);
  report.note(`${state}: statistics were refused after ${took.toFixed(0)} ms`);
}

async function judgeRecovery(report: Report, { api }: World): Promise<void> {
  const ask = async () => (await Promise.all(STATISTICS.map((path) => api("GET", path)))).map(({ status }) => status);
  const statuses = await waitFor("statistics to come back", async () => {
    const found = await ask();
    return found.every((status) => status === 200) ? found : undefined;
  });
  report.check("statistics, without anybody's help", statuses, [200, 200, 200]);
}
