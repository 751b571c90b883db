import { domainToASCII } from "node:url";

/**
 * Judges the difference between what was typed and what was stored, without the code under test: the two are the same
 * URL but for its spelling when scheme and host agree without regard to case and to the form of an international
 * name, the default port may be missing, an empty path may be `/`, and everything behind the host is the same bytes
 * once percent-escapes are undone (RFC 3986 section 6.2.2; RFC 5891).
 * @returns null when nothing differs, the kind of the difference, or `"other"` for anything that is no mere spelling
 */
export function spellingChange(typed: string, stored: string): string | null {
  if (typed === stored) return null;
  const [a, b] = [split(typed), split(stored)];
  if (!a || !b || a.origin !== b.origin) return "other";
  const kinds: string[] = [];
  if (typed.slice(0, typed.length - a.rest.length) !== stored.slice(0, stored.length - b.rest.length))
    kinds.push("origin");
  const rest = a.rest.startsWith("/") ? a.rest : `/${a.rest}`;
  if (rest !== a.rest) kinds.push("root");
  if (rest !== b.rest) kinds.push(restChange(rest, b.rest));
  return kinds.includes("other") ? "other" : kinds.join("+");
}

function restChange(typed: string, stored: string): string {
  const [a, b] = [bytes(typed), bytes(stored)];
  if (a === b) return "escapes";
  return bytes(removeDots(typed)) === b ? "dot segments" : "other";
}

function split(text: string): { origin: string; rest: string } | null {
  const match = /^([A-Za-z]+):\/\/([^/?#]*)(.*)$/s.exec(text);
  if (!match) return null;
  const [, scheme = "", authority = "", rest = ""] = match;
  const [, host = "", port = ""] = /^(.*?)(?::(\d*))?$/.exec(authority) ?? [];
  const normal = scheme.toLowerCase();
  const shownPort = port === (normal === "https" ? "443" : "80") ? "" : port;
  return { origin: `${normal}://${host.startsWith("[") ? host : domainToASCII(host)}:${shownPort}`, rest };
}

/** Escapes undone, as a text with one character for each byte. */
function bytes(text: string): string {
  const raw = Buffer.from(text, "utf8").toString("latin1");
  return raw.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** RFC 3986 section 5.2.4, by the longhand; an escaped dot is a dot (section 6.2.2.2). */
function removeDots(rest: string): string {
  const [, path = "", tail = ""] = /^([^?#]*)(.*)$/s.exec(rest) ?? [];
  const out: string[] = [];
  const segments = path
    .split("/")
    .slice(1)
    .map((segment) => (/^(\.|%2e){1,2}$/i.test(segment) ? segment.replace(/%2e/gi, ".") : segment));
  segments.forEach((segment, index) => {
    const last = index === segments.length - 1;
    if (segment === "..") out.pop();
    if (segment === "." || segment === "..") {
      if (last) out.push("");
    } else out.push(segment);
  });
  return `/${out.join("/")}${tail}`;
}
