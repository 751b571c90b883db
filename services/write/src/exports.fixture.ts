// A write service with a click-ingest that exports, some clicks of an owner with an odd name, and an export of them.
import { expect } from "@jest/globals";
import { type ExportState, hasEnded } from "@linkfence/contracts";
import { waitFor } from "@linkfence/testkit";
import { startApiWorld } from "./api-world.fixture.ts";
import { startExporter } from "./exporter.fixture.ts";

export type Job = {
  id: string;
  state: ExportState;
  rows: number;
  bytes: number;
  download: string | null;
  codes: string[] | null;
};
export type ExportApi = Awaited<ReturnType<typeof openExportApi>>;

export const OWNER = 'Zoë "Ω"; filename=evil.exe\\ /../x';
export const CLICKS = 3;

/** Opens it. `zoe` and `bob` are keys of OWNER and of somebody else. */
export async function openExportApi(env: Record<string, string> = {}) {
  const exporter = await startExporter();
  const world = await startApiWorld({ CLICK_INGEST_URL: exporter.url, ...env });
  const zoe = await world.addKey(OWNER, ["exports", "links:create"]);
  const bob = await world.addKey("bob", ["exports", "links:create"]);
  const { json } = await world.api("POST", "/v1/links", { target: "https://example.com/" }, zoe);
  const code = String(json.code);
  await follow(exporter.url, code);

  async function order(body: object, key = zoe): Promise<Job> {
    const { status, json } = await world.api<Job>("POST", "/v1/exports", body, key);
    expect(status).toBe(202);
    return json;
  }

  const ended = ({ id }: Job, key = zoe) =>
    waitFor("the end of the export", async () => {
      const found = (await world.api<Job>("GET", `/v1/exports/${id}`, undefined, key)).json;
      return hasEnded(found) && found;
    });

  /** Asks for a file, and holds the answer against the document. */
  function get({ id }: { id: string }, headers: Record<string, string> = {}, { key = zoe, method = "GET" } = {}) {
    return world.raw(`/v1/exports/${id}/download`, { method, headers: { Authorization: `Bearer ${key}`, ...headers } });
  }

  return {
    ...{ exporter, world, zoe, bob, code, order, ended, get },
    async close(): Promise<void> {
      await world.stop();
      await exporter.stop();
    },
  };
}

/** Clicks as a redirect process sends them. */
async function follow(url: string, code: string): Promise<void> {
  const at = Date.now() - 60_000;
  const time = at.toString(16).padStart(12, "0");
  const clicks = Array.from({ length: CLICKS }, (_, n) => ({
    id: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(n).padStart(12, "0")}`,
    ...{ code, version: 1, at, referrerHost: null, userAgent: "Mozilla/5.0", owner: OWNER },
  }));
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ sender: "test", clicks });
  const answer = await fetch(`${url}/v1/clicks`, { method: "POST", headers, body });
  expect(await answer.json()).toMatchObject({ inserted: CLICKS });
}

export const codeOf = ({ body }: { body: string }) => (JSON.parse(body) as { code: string }).code;
