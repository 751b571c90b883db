// Arrays, as parameters and in results. The driver can look the types up by itself when it connects, but an error in
// that question has nobody to go to and ends the process: a server that closes connections as they open would stop a
// service. So the types that the schemas use are stated here, and the driver asks nothing.
import { parse } from "postgres-array";

/**
 * Renders a one-dimensional array literal (PostgreSQL manual, section 8.15.6). Every element is quoted, as one named
 * NULL, or one with a comma, would otherwise be read as something else.
 */
export function arrayLiteral(values: readonly (string | number | null)[]): string {
  // Joined at once, as a text that grows by each element is a tree, which costs more to keep than all the rest.
  if (values.every(isPlainElement)) return values.length === 0 ? "{}" : `{"${values.join('","')}"}`;
  return `{${values.map((value) => (value === null ? "NULL" : `"${escapeElement(String(value))}"`)).join()}}`;
}

/** Whether it is the same between quotes. Looking is much cheaper than replacing: clicks come by ten thousands. */
function isPlainElement(value: string | number | null): boolean {
  return typeof value === "string" ? !value.includes('"') && !value.includes("\\") : value !== null;
}

function escapeElement(text: string): string {
  return text.replace(/["\\]/g, "\\$&");
}

/** Object identifiers of array types (pg_type.dat in PostgreSQL's sources). */
const OID = { bool: 1000, int4: 1007, text: 1009, int8: 1016, date: 1182, timestamptz: 1185, uuid: 2951 };

/**
 * Reads a literal as the server writes it. Where it has one dimension, begins at index 1 and has no element that had to be
 * quoted, what stands between the commas is meant; the library, which reads the others, goes through each letter by letter.
 */
export function parseArray<T>(text: string, parseElement: (text: string) => T): (T | null)[] {
  if (!isPlain(text)) return parse(text, parseElement);
  const elements = text.slice(1, -1).split(",");
  if (text.includes("NULL")) return elements.map((element) => (element === "NULL" ? null : parseElement(element)));
  return elements.map((element) => parseElement(element));
}

/** Looked for one by one, as a text is searched for one letter by machine code, and by a pattern not until it is warm. */
function isPlain(text: string): boolean {
  if (!text.startsWith("{") || text.indexOf("}") !== text.length - 1 || text.length === 2) return false;
  return text.lastIndexOf("{") === 0 && !text.includes('"') && !text.includes("\\");
}

/** A parameter that is a text already is a literal, and stays as it is. */
function arrayType<T>(oid: number, parseElement: (text: string) => T) {
  return {
    to: oid,
    from: [oid],
    serialize: (value: readonly (string | number | null)[] | string) =>
      typeof value === "string" ? value : arrayLiteral(value),
    parse: (text: string) => parseArray(text, parseElement),
  };
}

/**
 * The driver's `types` setting for arrays.
 * @param parseBigint how one bigint is read
 */
export function createArrayTypes(parseBigint: (text: string) => number) {
  return {
    booleanArray: arrayType(OID.bool, (text) => text === "t"),
    int4Array: arrayType(OID.int4, Number),
    textArray: arrayType(OID.text, String),
    bigintArray: arrayType(OID.int8, parseBigint),
    dateArray: arrayType(OID.date, String),
    timestamptzArray: arrayType(OID.timestamptz, String),
    uuidArray: arrayType(OID.uuid, String),
  };
}
