// One run of the fuzzer: requests for one operation, each answer held against the document and against the judge.
import { Agent, request as httpRequest } from "node:http";
import { createContractCheck, type HttpAnswer, isEventStream } from "@linkfence/testkit";
import fc from "fast-check";
import { createJudge } from "./fuzz-judge.fixture.ts";
import { type FuzzRequest, requestsFor } from "./fuzz-requests.fixture.ts";
import { createPool } from "./fuzz-values.fixture.ts";
import { type Operation, operations } from "./operations.fixture.ts";

export type FuzzOptions = {
  url: string;
  /** Makes a key that every call allows; called anew when the one before was refused, which a call may have revoked. */
  makeKey: () => Promise<string>;
  seed: number;
  /** Requests for each operation at the most. */
  requests: number;
};

/** Answers by operation and status. */
export type Tally = Map<string, Map<string, number>>;

/** Far longer than any call takes that ends; streams are not waited for. */
const ANSWER_MS = 20_000;
const NONSENSE = ["", "Bearer", "Bearer x", "Basic eDp4", "Bearer linkfence_AAAAAAAAAAAA_"];

/** Creates a fuzzer, which remembers from operation to operation what there is to ask for. */
export function createFuzzer({ url, makeKey, seed, requests }: FuzzOptions) {
  const agent = new Agent({ keepAlive: true });
  const { faultsOf, itemFaults } = createJudge();
  const { check } = createContractCheck();
  const pool = createPool();
  const tally: Tally = new Map();
  let key: string | undefined;

  async function authorize({ credentials, target }: FuzzRequest): Promise<Record<string, string>> {
    if (credentials === "none") return {};
    if (credentials === "nonsense") return { Authorization: NONSENSE[target.length % NONSENSE.length] ?? "" };
    key ??= await makeKey();
    return { Authorization: `Bearer ${key}` };
  }

  async function ask(request: FuzzRequest): Promise<HttpAnswer> {
    const answer = await send(agent, url, {
      ...request,
      headers: { ...request.headers, ...(await authorize(request)) },
    });
    if (answer.status !== 401 || request.credentials !== "key") return answer;
    key = undefined;
    return send(agent, url, { ...request, headers: { ...request.headers, ...(await authorize(request)) } });
  }

  /** Sends one request; throws an error that says what is wrong with its answer. */
  async function tryOne(operation: Operation, request: FuzzRequest): Promise<void> {
    const answer = await ask(request);
    count(tally, operation.operationId, answer);
    check(request.method, request.target, answer);
    if (answer.status >= 500) throw new Error(`answered ${answer.status}: ${answer.body}`);
    // Behind a limit everything else would look as if it were refused.
    if (answer.status === 429) throw new Error(`stopped by a limit: ${answer.body}`);
    if (answer.status < 200 || answer.status > 299) return;
    const told = parse(answer.body);
    const faults = [...faultsOf(operation, request), ...itemFaults(operation, request, told)];
    if (faults.length > 0) throw new Error(`accepted with ${answer.status}, although wrong in ${faults.join(", ")}`);
    if (operation.scope !== null && request.credentials !== "key") throw new Error("accepted without a key");
    pool.learn(operation.path, told);
  }

  return {
    tally,
    close: () => agent.destroy(),
    /** Remembers an answer that an operation of this path gave. */
    learn: pool.learn,
    /**
     * Sends an operation its requests. Rejects with the first that was answered wrongly, made as small as can be.
     * @param timeLimitMs ends them, however many there were
     */
    async fuzz(operation: Operation, timeLimitMs: number): Promise<void> {
      const property = fc.asyncProperty(requestsFor(operation, pool), (request) => tryOne(operation, request));
      const limits = { interruptAfterTimeLimit: timeLimitMs, markInterruptAsFailure: false };
      // Operations that take the same would be asked the same.
      const own = seed + operations.indexOf(operation);
      await fc.assert(property, { seed: own, numRuns: requests, includeErrorInReport: true, ...limits });
    },
  };
}

/** The tally as a table, one line for each operation. */
export function printTally(tally: Tally): string {
  const lines = [...tally].map(([operation, statuses]) => {
    const each = [...statuses].sort().map(([status, n]) => `${status} × ${n}`);
    return `${operation}: ${[...statuses.values()].reduce((a, b) => a + b, 0)} requests; ${each.join(", ")}`;
  });
  return `${lines.join("\n")}\n`;
}

function count(tally: Tally, operationId: string, { status }: HttpAnswer): void {
  const statuses = tally.get(operationId) ?? new Map<string, number>();
  statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1);
  tally.set(operationId, statuses);
}

/** Sends a request as it is. Of a stream of events only the beginning is awaited. */
function send(agent: Agent, base: string, { method, target, headers, body }: FuzzRequest): Promise<HttpAnswer> {
  const { hostname, port } = new URL(base);
  const length = body === null ? {} : { "Content-Length": String(body.byteLength) };
  return new Promise((resolve, reject) => {
    const options = { agent, hostname, port, method, path: target, headers: { ...headers, ...length } };
    const outgoing = httpRequest({ ...options, timeout: ANSWER_MS }, (response) => {
      const chunks: Buffer[] = [];
      const finish = () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        });
      if (isEventStream(response.headers)) {
        finish();
        response.destroy();
        return;
      }
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", finish);
    });
    outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
    outgoing.once("error", reject);
    outgoing.end(body ?? undefined);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
