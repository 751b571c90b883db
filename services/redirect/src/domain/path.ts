import { isCode } from "@linkfence/contracts";

/** Longest code (see the contract's pattern), and longest path that can still mean one: each character may be escaped. */
const CODE_MIN = 3;
const CODE_MAX = 32;
const ESCAPED_MAX = CODE_MAX * 3 + 4;

const QUESTION_MARK = 63;
const SLASH = 47;

/** 1 for each ASCII character that a code may contain. */
const ALLOWED = Uint8Array.from({ length: 128 }, (_, character) =>
  /[A-Za-z0-9_-]/.test(String.fromCharCode(character)) ? 1 : 0,
);

/**
 * The code in a request target of the form `/{code}`, `/{code}/` or either with a query, which is ignored; null for
 * everything else. Reads the raw text, without a parser, since this is asked for every request.
 * @param url request target as received (RFC 9112 section 3.2.1)
 */
export function codeInUrl(url: string): string | null {
  if (url.charCodeAt(0) !== SLASH) return null;
  let end = 1;
  while (end < url.length && end <= CODE_MAX + 1) {
    const character = url.charCodeAt(end);
    if (character >= 128 || ALLOWED[character] === 0) break;
    end += 1;
  }
  if (end < CODE_MIN + 1 || end > CODE_MAX + 1) return null;
  const next = url.charCodeAt(end) === SLASH ? end + 1 : end;
  if (next < url.length && url.charCodeAt(next) !== QUESTION_MARK) return null;
  return url.slice(1, end);
}

/** What a request asks for where it is not plainly a code. */
export type Asked = { kind: "code" | "preview"; code: string } | { kind: "file"; name: string } | { kind: "nothing" };

/**
 * Reads a request target that `codeInUrl` did not take. Escapes of unreserved characters mean the characters themselves
 * (RFC 3986 section 2.3); a broken escape means nothing. `/{code}+` asks where the link leads.
 */
export function askedFor(url: string): Asked {
  const path = url.split("?", 1)[0] ?? "";
  if (path.length > ESCAPED_MAX || !path.startsWith("/")) return { kind: "nothing" };
  const name = decode(path.slice(1));
  if (name === null) return { kind: "nothing" };
  const bare = name.endsWith("/") && !path.endsWith("%2F") && !path.endsWith("%2f") ? name.slice(0, -1) : name;
  if (isCode(bare)) return { kind: "code", code: bare };
  if (bare.endsWith("+") && isCode(bare.slice(0, -1))) return { kind: "preview", code: bare.slice(0, -1) };
  return /^[a-z]+\.[a-z]+$/.test(name) ? { kind: "file", name } : { kind: "nothing" };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
