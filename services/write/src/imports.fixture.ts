// A file on its way to the import call, for the tests: whole, or piece by piece under the test's control.
import { once } from "node:events";
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { ImportErrorPage, ImportLinkPage, ImportResult } from "@linkfence/contracts";
import { sharedContractCheck } from "@linkfence/testkit";

export const CSV = "text/csv";
export const JSON_LINES = "application/jsonl";

export type FileOptions = { key?: string; type?: string; query?: string; headers?: Record<string, string> };
export type ImportAnswer = { status: number; headers: IncomingHttpHeaders; body: ImportResult & { detail?: string } };
export type OpenFile = {
  /** Sends a piece; resolves when the socket wants more. */
  write(piece: string | Buffer): Promise<void>;
  end(piece?: string | Buffer): void;
  /** Breaks the connection off. */
  destroy(): void;
  /** Rejects when the connection ends without an answer. */
  answer: Promise<ImportAnswer>;
  request: ClientRequest;
};

/** Begins an upload. */
export function openFile(url: string, apiKey: string, options: FileOptions = {}): OpenFile {
  const { key, type = CSV, query = "", headers = {} } = options;
  const outgoing = request(`${url}/v1/imports${query}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${apiKey}`,
      "Content-Type": type,
      ...(key === undefined ? {} : { "Idempotency-Key": key }),
      ...headers,
    },
  });
  const answer = readAnswer(outgoing);
  answer.catch(() => {});
  outgoing.on("error", () => {});
  outgoing.flushHeaders();
  return {
    async write(piece) {
      if (!outgoing.write(piece)) await Promise.race([once(outgoing, "drain"), answer.catch(() => {})]);
    },
    end: (piece) => void outgoing.end(piece),
    destroy: () => void outgoing.destroy(),
    answer,
    request: outgoing,
  };
}

/** Reads the answer, and holds it against the OpenAPI document. */
function readAnswer(outgoing: ClientRequest): Promise<ImportAnswer> {
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject).once("close", () => reject(new Error("the connection ended without an answer")));
    outgoing.once("response", (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).once("error", reject);
      response.once("end", () => {
        const body = Buffer.concat(chunks).toString("utf8");
        const told = { status: response.statusCode ?? 0, headers: response.headers };
        try {
          sharedContractCheck().check("POST", outgoing.path, { ...told, body });
          resolve({ ...told, body: JSON.parse(body) });
        } catch (error) {
          reject(error);
        }
      });
    });
  });
}

/** Sends a whole file. */
export async function sendFile(url: string, apiKey: string, file: string | Buffer, options: FileOptions = {}) {
  const open = openFile(url, apiKey, options);
  open.end(file);
  return open.answer;
}

/** Reads all pages of an import's `links` or `errors`. */
export async function readPages<T extends ImportLinkPage | ImportErrorPage>(
  read: (path: string) => Promise<{ status: number; json: T }>,
  path: string,
): Promise<T["items"]> {
  const items: unknown[] = [];
  for (let after = 0; ; ) {
    const { json } = await read(`${path}?limit=1000&after=${after}`);
    items.push(...json.items);
    if (json.next === null) return items as T["items"];
    after = json.next;
  }
}
