/** Parameters as RFC 9110 section 5.6.6 has them; `charset` must mean UTF-8 (RFC 7111 section 5.1, for text/csv). */
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const UTF8 = 'charset=(?:utf-?8|"utf-?8")';
const OTHER = `(?!charset=)${TOKEN}=(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
const PARAMETERS = `(?:[ \\t]*;(?:[ \\t]*(?:${UTF8}|${OTHER}))?)*[ \\t]*`;
const CSV_IN_UTF8 = new RegExp(`^text/csv${PARAMETERS}$`, "i");
const JSON_LINES_IN_UTF8 = new RegExp(`^application/(?:jsonl|x-ndjson)${PARAMETERS}$`, "i");

/** Says whether a Content-Type field announces CSV, in UTF-8 where it names an encoding. */
export function isCsvInUtf8(contentType: string | undefined): boolean {
  return CSV_IN_UTF8.test(contentType ?? "");
}

/** The same for one JSON value a line. */
export function isJsonLinesInUtf8(contentType: string | undefined): boolean {
  return JSON_LINES_IN_UTF8.test(contentType ?? "");
}
