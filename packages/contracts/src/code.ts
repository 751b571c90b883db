/** What a code may look like: 3 to 32 unreserved characters of RFC 3986 section 2.3, less `.` and `~`. Case matters. */
export const CODE_PATTERN = /^[A-Za-z0-9_-]{3,32}$/;

/** Says whether a text can be a code at all. A text that cannot is never looked up. */
export function isCode(text: string): boolean {
  return CODE_PATTERN.test(text);
}
