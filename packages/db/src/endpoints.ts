import type { Endpoint } from "./sockets.ts";

/**
 * Parts the host list from a connection URL, and leaves URLs with one host each for drivers that take no more.
 * Throws `TypeError` when the text is no URL.
 * @returns `url` has the first host, `urls` has all of them in turn
 */
export function splitEndpoints(text: string): { url: string; urls: string[]; endpoints: Endpoint[] } {
  const [, head = "", hosts = "", tail = ""] = /^([a-z]+:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/i.exec(text) ?? [];
  const parts = hosts.split(",");
  const endpoints = parts.map((part) => {
    const url = new URL(`tcp://${part}`);
    return { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port === "" ? 5432 : Number(url.port) };
  });
  const urls = parts.map((part) => `${head}${part}${tail}`);
  return { url: urls[0] ?? text, urls, endpoints };
}
