/**
 * The type and its parameters: names in any letter case, blanks around ";" and none around "=" (RFC 9110 section 5.6.6).
 * `charset` is no parameter of this media type (RFC 8259 section 11); clients that send it must mean UTF-8.
 */
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const UTF8 = 'charset=(?:utf-?8|"utf-?8")';
const OTHER = `(?!charset=)${TOKEN}=(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
const JSON_IN_UTF8 = new RegExp(`^application/json(?:[ \\t]*;(?:[ \\t]*(?:${UTF8}|${OTHER}))?)*[ \\t]*$`, "i");

/** Says whether a Content-Type field announces JSON, in UTF-8 where it names an encoding. */
export function isJsonInUtf8(contentType: string | undefined): boolean {
  return JSON_IN_UTF8.test(contentType ?? "");
}
