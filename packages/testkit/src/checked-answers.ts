// Answers of the admin API that a test got by another way than `sendChecked`, held against the OpenAPI document as well.
import type { IncomingHttpHeaders } from "node:http";
import { sharedContractCheck } from "./contract-check.ts";
import type { HttpAnswer } from "./http-client.ts";

/**
 * Checks an answer that `fetch` got. It stays to be read; of a stream of events only its beginning is looked at.
 * @returns the answer
 */
export async function checkFetched(method: string, target: string, response: Response): Promise<Response> {
  const { status } = response;
  const headers: IncomingHttpHeaders = Object.fromEntries(response.headers);
  const body = isEventStream(headers) ? "" : await response.clone().text();
  sharedContractCheck().check(method, target, { status, headers, body });
  return response;
}

/**
 * Checks an answer that came over a plain socket, which has to be closed behind it.
 * @param text all that came
 * @returns the text
 */
export function checkRaw(method: string, target: string, text: string): string {
  sharedContractCheck().check(method, target, readAnswer(text));
  return text;
}

/** Whether an answer is a stream of events, which nobody waits for the end of. */
export function isEventStream(headers: IncomingHttpHeaders): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") ?? false;
}

/** Takes an HTTP/1.1 message apart (RFC 9112 section 2.1) whose content is as long as it says. */
function readAnswer(text: string): HttpAnswer {
  const [head = "", ...content] = text.split("\r\n\r\n");
  const [start = "", ...lines] = head.split("\r\n");
  const fields = lines.map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.toLowerCase(), value.join(":").trim()];
  });
  const headers: IncomingHttpHeaders = Object.fromEntries(fields);
  if (headers["transfer-encoding"] !== undefined) throw new Error("an answer in chunks cannot be read here");
  return { status: Number(start.split(" ")[1]), headers, body: content.join("\r\n\r\n") };
}
