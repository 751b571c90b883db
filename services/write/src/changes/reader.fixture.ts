// A reader of event streams for tests: it takes what comes apart, and can be told to stop reading.
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { isEventStream, sharedContractCheck } from "@linkfence/testkit";

export type StreamEvent = { id: string; event: string; data: Record<string, unknown> };
export type StreamReader = Awaited<ReturnType<typeof openReader>>;

export type ReaderOptions = {
  key: string;
  path?: string;
  headers?: Record<string, string>;
  /** Which schema of the OpenAPI document events have; null for none. */
  schema?: string | null;
};

/**
 * Opens a stream, and resolves when its answer begins; of an answer that is none, when it has ended. Rejects when it is not
 * what the OpenAPI document says. So does whatever waits for events, after one that is not.
 */
export async function openReader(base: string, options: ReaderOptions) {
  const { key, path = "/v1/changes", headers = {}, schema = "LinkChange" } = options;
  const fields = { Authorization: `Bearer ${key}`, Accept: "text/event-stream", ...headers };
  const { hostname, port } = new URL(base);
  const events: StreamEvent[] = [];
  const listeners = new Set<() => void>();
  const state = { lastId: "", retry: 0, heartbeats: 0, ended: false, broken: false };
  const contract = sharedContractCheck();
  const pieces: string[] = [];
  let fault: unknown;
  let rest = "";

  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request({ hostname, port, path, headers: fields, agent: false });
    outgoing.once("response", resolve).once("error", reject).end();
  });
  const tell = () => {
    for (const listener of listeners) listener();
  };
  response.setEncoding("utf8");
  const streams = isEventStream(response.headers);
  response.on("data", (chunk: string) => {
    if (!streams) pieces.push(chunk);
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) take(block);
    tell();
  });
  response.on("error", () => {
    state.broken = true;
  });
  response.once("close", () => {
    state.ended = true;
    tell();
  });

  function take(block: string): void {
    const lines = block.split("\n").map((line) => line.split(/: ?/, 1).concat(line.replace(/^[^:]*: ?/, "")));
    const field = (name: string) => lines.find(([key]) => key === name)?.[1];
    const id = field("id");
    if (id !== undefined) state.lastId = id;
    if (field("retry") !== undefined) state.retry = Number(field("retry"));
    if (lines.some(([key]) => key === "")) state.heartbeats += 1;
    const data = field("data");
    if (data !== undefined) takeEvent(field("event") ?? "message", JSON.parse(data));
  }

  function takeEvent(event: string, data: Record<string, unknown>): void {
    events.push({ id: state.lastId, event, data });
    if (schema === null) return;
    try {
      contract.checkPart(schema, data);
    } catch (error) {
      fault ??= error;
    }
  }

  /** Resolves when `holds`; rejects when the stream ended before, or after 40 s. */
  function until(holds: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void) => {
        clearTimeout(timer);
        listeners.delete(look);
        act();
      };
      const look = () => {
        if (fault !== undefined) finish(() => reject(fault));
        else if (holds()) finish(resolve);
        else if (state.ended) finish(() => reject(new Error(`the stream ended with ${events.length} events`)));
      };
      const timer = setTimeout(() => finish(() => reject(new Error(`still ${events.length} events`))), 40_000);
      listeners.add(look);
      look();
    });
  }

  if (!streams) await until(() => state.ended);
  const status = response.statusCode ?? 0;
  contract.check("GET", path, { status, headers: response.headers, body: pieces.join("") });

  return {
    status,
    headers: response.headers as IncomingHttpHeaders,
    events,
    state,
    codes: () => events.map(({ data }) => data.code),
    until,
    /** Resolves when so many events have come. */
    received: (count: number) => until(() => events.length >= count),
    /** Resolves when the server has ended the stream. */
    ended: () => until(() => state.ended),
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => void response.destroy(),
  };
}
