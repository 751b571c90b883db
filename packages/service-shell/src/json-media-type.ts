/**
 * The type and its parameters: names in any letter case, blanks around ";" and none around "=" (RFC 9110 section 5.6.6).
 * `charset` is no parameter of this media type (RFC 8259 section 11); clients that send it must mean UTF-8.
 */
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const UTF8 = 'charset=(?:utf-?8|"utf-?8")';
const OTHER = `(?!charset=)${TOKEN}=(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
const PARAMETERS = `(?:[ \\t]*;(?:[ \\t]*(?:${UTF8}|${OTHER}))?)*[ \\t]*`;
const JSON_IN_UTF8 = new RegExp(`^application/json${PARAMETERS}$`, "i");
const PATCH_IN_UTF8 = new RegExp(`^application/(?:merge-patch\\+)?json${PARAMETERS}$`, "i");

/** Says whether a Content-Type field announces JSON, in UTF-8 where it names an encoding. */
export function isJsonInUtf8(contentType: string | undefined): boolean {
  return JSON_IN_UTF8.test(contentType ?? "");
}

/** The same for a change: `application/merge-patch+json` (RFC 7396) or plain JSON, which means the same here. */
export function isJsonPatchInUtf8(contentType: string | undefined): boolean {
  return PATCH_IN_UTF8.test(contentType ?? "");
}
