import { Problem } from "@linkfence/contracts";
import { hasOneHost } from "@linkfence/service-shell";
import type { RequestHandler } from "express";

/** A host and a port (RFC 9110 section 7.2), in the letters that names, addresses and their escapes are made of. */
const HOST = /^(?:[A-Za-z0-9._~%-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/**
 * Refuses requests of which it could be doubted whom they were meant for: without a Host, or with several or one that is
 * none (RFC 9112 section 3.2), and with a target that is no path. A whole URL as target is for proxies; this service is
 * none, and whatever stands in front may have gone by the field where this went by the URL.
 */
export const refuseOddTargets: RequestHandler = (request, _response, next) => {
  const { httpVersion, headers, url } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") throw refusal("version", "HTTP/1.1", "speak HTTP/1.1");
  if (!hasOneHost(request)) throw refusal("Host", "once", "send one Host field");
  if (headers.host !== undefined && !HOST.test(headers.host))
    throw refusal("Host", "host", "the Host field must be a host, and a port where it is not the usual one");
  if (!url.startsWith("/") || url.includes("#"))
    throw refusal("target", "path", "the request's target must be a path that begins with /, and a query");
  next();
};

function refusal(field: string, rule: string, detail: string): Problem {
  return new Problem("invalid-request", detail, [{ field, rule, detail }]);
}
