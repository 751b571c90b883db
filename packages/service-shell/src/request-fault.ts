// Requests of which it could be doubted what they say, or whom they were meant for. Whatever stands in front may have read
// them otherwise, and let somebody in by what it read.
import type { IncomingMessage } from "node:http";
import { Problem } from "@linkfence/contracts";
import type { RequestHandler } from "express";

/** A host and a port (RFC 9110 section 7.2), in the letters that names, addresses and their escapes are made of. */
const HOST = /^(?:[A-Za-z0-9._~%-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

const FAULTS = {
  version: ["version", "HTTP/1.1", "speak HTTP/1.1"],
  hosts: ["Host", "once", "send one Host field"],
  host: ["Host", "host", "the Host field must be a host, and a port where it is not the usual one"],
  target: ["target", "path", "the request's target must be a path that begins with /, and a query"],
  coding: ["Transfer-Encoding", "chunked", "send the body in chunks, or with its length, and not otherwise"],
} as const;
export type RequestFault = keyof typeof FAULTS;

/**
 * Says what is wrong with the line and the Host of a request; null where nothing is.
 * - The parser also takes HTTP/0.9 and HTTP/2.0 for versions.
 * - HTTP/1.0 knows no Host; from 1.1 on there is one, no more, and it is a host (RFC 9112 section 3.2). Node shows the
 *   first of several, and whatever stands in front may have gone by the last.
 * - A whole URL as target is for proxies, which no service is; `*` and what CONNECT has are none of a path either.
 */
export function findRequestFault({ httpVersion, rawHeaders, url = "" }: IncomingMessage): RequestFault | null {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "version";
  let hosts = 0;
  let host = "";
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 4 || name.toLowerCase() !== "host") continue;
    hosts += 1;
    host = rawHeaders[index + 1] ?? "";
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) return "hosts";
  if (hosts === 1 && !HOST.test(host)) return "host";
  return url.startsWith("/") ? null : "target";
}

/** Refuses such requests, for services whose answers are problems; also targets with a fragment, and unknown codings. */
export const refuseOddRequests: RequestHandler = (request, _response, next) => {
  const fault = findRequestFault(request);
  if (fault) throw refusal(fault);
  if (request.url.includes("#")) throw refusal("target");
  const coding = request.headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") throw refusal("coding");
  next();
};

function refusal(fault: RequestFault): Problem {
  const [field, rule, detail] = FAULTS[fault];
  return new Problem("invalid-request", detail, [{ field, rule, detail }]);
}
