// Reads requests as most visitors send them: a GET for a link, whole in one piece, and nothing about it that two readers could
// take for two things. Whatever is not that plain is for Node's parser, which decides then: nothing is refused here.
import { codeInUrl } from "../domain/path.ts";

/** A request for a link. */
export type PlainRequest = {
  code: string;
  /** Names in lower case and values of the wanted fields, in turn, as they came. */
  rawHeaders: readonly string[];
};

/** What a request in these bytes asks for; null where it is not plain. */
export type PlainReader = (bytes: Buffer) => PlainRequest | null;

/** As Node's own bound of a header block: a larger one is Node's to refuse. */
const BYTES_MAX = 8192;
/** Fields that tell of the visitor (see `domain/visitor.ts`), and which kind of page is wanted. */
const WANTED = ["accept", "referer", "user-agent", "sec-purpose", "purpose", "x-purpose", "x-moz"];
/** Fields that make something else of a request than its head, or of its connection. */
const UNUSUAL = ["content-length", "transfer-encoding", "expect", "upgrade", "trailer", "proxy-connection"];
const NONE: readonly string[] = [];

const [TAB, LF, CR, SPACE, COLON] = [9, 10, 13, 32, 58];
const GET = Buffer.from("GET /", "latin1");
const VERSION = Buffer.from(" HTTP/1.1\r\n", "latin1");
const KEEP_ALIVE = Buffer.from("keep-alive", "latin1");

/** What a byte may be a part of: a field's name (RFC 9110 section 5.6.2), its value, a target. */
const [NAME, VALUE, TARGET] = [1, 2, 4];
const PART_OF = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  const name = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(character) ? NAME : 0;
  const value = byte === TAB || (byte >= SPACE && byte < 127) ? VALUE : 0;
  // Of what may stand in a target but for its fragment (RFC 3986 section 2).
  const target = /[A-Za-z0-9._~!$&'()*+,;=:@%/?[\]-]/.test(character) ? TARGET : 0;
  return name | value | target;
});
/** Each byte, capital letters of ASCII as small ones. */
const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte));
/** A host that is a name or an address of four numbers, and a port. */
const HOST = /^[A-Za-z0-9.-]{1,255}(?::\d{1,5})?$/;

type Meaning = "host" | "connection" | "unusual" | "wanted";
type Field = { name: string; bytes: Buffer; meaning: Meaning };

/**
 * Creates the reader of plain requests.
 *
 * A request is plain if it is `GET`, has a target that is a link's code (see `codeInUrl`), speaks HTTP/1.1, has exactly one
 * Host, names no other wish for its connection than to keep it, has no body, expects nothing, and if the bytes are that one
 * request and nothing else, within the letters that RFC 9110 section 5.5 knows without the obsolete ones.
 * @param fields names of further fields that are wanted
 */
export function createPlainReader(fields: readonly string[] = []): PlainReader {
  const fieldsOfLength = listByLength(fields);

  /** What this process cares about in a field of that name; undefined where nothing. */
  function fieldAt(bytes: Buffer, start: number, length: number): Field | undefined {
    const candidates = fieldsOfLength[length];
    if (candidates === undefined) return undefined;
    for (const field of candidates) if (isSameLetters(bytes, start, field.bytes)) return field;
    return undefined;
  }

  return (bytes) => {
    const size = bytes.length;
    if (size > BYTES_MAX || !isSame(bytes, 0, GET)) return null;
    const targetEnd = endOf(TARGET, bytes, GET.length);
    if (!isSame(bytes, targetEnd, VERSION)) return null;
    const code = codeInUrl(bytes.toString("latin1", GET.length - 1, targetEnd));
    if (code === null) return null;

    let rawHeaders: string[] | null = null;
    let hosts = 0;
    let at = targetEnd + VERSION.length;
    while (bytes[at] !== CR) {
      const nameEnd = endOf(NAME, bytes, at);
      if (nameEnd === at || bytes[nameEnd] !== COLON) return null;
      const valueStart = skipBlanks(bytes, nameEnd + 1);
      const lineEnd = endOf(VALUE, bytes, valueStart);
      if (bytes[lineEnd] !== CR || bytes[lineEnd + 1] !== LF) return null;
      const field = fieldAt(bytes, at, nameEnd - at);
      at = lineEnd + 2;
      if (field === undefined) continue;
      const valueEnd = trimBlanks(bytes, valueStart, lineEnd);
      switch (field.meaning) {
        case "wanted":
          rawHeaders ??= [];
          rawHeaders.push(field.name, bytes.toString("latin1", valueStart, valueEnd));
          break;
        case "host":
          hosts += 1;
          if (!HOST.test(bytes.toString("latin1", valueStart, valueEnd))) return null;
          break;
        case "connection":
          if (valueEnd - valueStart !== KEEP_ALIVE.length) return null;
          if (!isSameLetters(bytes, valueStart, KEEP_ALIVE)) return null;
          break;
        case "unusual":
          return null;
      }
    }
    if (hosts !== 1 || bytes[at + 1] !== LF || at + 2 !== size) return null;
    return { code, rawHeaders: rawHeaders ?? NONE };
  };
}

/** The fields that mean something, by the length of their names: most fields of a request mean nothing, and are told so. */
function listByLength(further: readonly string[]): readonly (readonly Field[] | undefined)[] {
  const meanings = new Map<string, Meaning>();
  for (const name of [...WANTED, ...further]) meanings.set(name.toLowerCase(), "wanted");
  for (const name of UNUSUAL) meanings.set(name, "unusual");
  // Also where such a field is wanted: what it does to the request counts for more.
  meanings.set("host", "host").set("connection", "connection");
  const lists: Field[][] = [];
  const lengths = [...meanings.keys()].map((name) => name.length);
  for (let length = 0; length <= Math.max(...lengths); length += 1) lists.push([]);
  for (const [name, meaning] of meanings)
    lists[name.length]?.push({ name, bytes: Buffer.from(name, "latin1"), meaning });
  return lists.map((list) => (list.length === 0 ? undefined : list));
}

/** The first place from `at` on whose byte is not a part of that; the end of the bytes where there is none. */
function endOf(part: number, bytes: Buffer, at: number): number {
  let end = at;
  while (end < bytes.length && ((PART_OF[bytes[end] as number] as number) & part) !== 0) end += 1;
  return end;
}

function skipBlanks(bytes: Buffer, at: number): number {
  let next = at;
  while (bytes[next] === SPACE || bytes[next] === TAB) next += 1;
  return next;
}

/** The end of a value without the blanks behind it. */
function trimBlanks(bytes: Buffer, start: number, end: number): number {
  let last = end;
  while (last > start && (bytes[last - 1] === SPACE || bytes[last - 1] === TAB)) last -= 1;
  return last;
}

function isSame(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let index = 0; index < wanted.length; index += 1) if (bytes[at + index] !== wanted[index]) return false;
  return true;
}

/** The same for a text in small letters, where the bytes may have capital ones. */
function isSameLetters(bytes: Buffer, at: number, small: Buffer): boolean {
  for (let index = 0; index < small.length; index += 1)
    if (LOWER[bytes[at + index] as number] !== small[index]) return false;
  return true;
}
