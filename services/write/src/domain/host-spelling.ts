// Is a host spelled the way the URL parser understood it? The parser is generous: it decodes escapes, drops invisible
// characters, folds look-alikes to ASCII and reads 0x7f.1 as an address. Each of these hides where a link leads.

export type HostRule = "userinfo" | "host-escape" | "host-character" | "host-number" | "host-label" | "port";
export type HostFault = { rule: HostRule; detail: string };

/** The dots that IDNA reads as a full stop (UTS 46 section 4, step 3). */
const OTHER_DOTS = /[\u3002\uff0e\uff61]/;
/**
 * What IDNA mapping would replace or drop. Two letters change under case folding and are nevertheless kept by IDNA as
 * they are (UTS 46 section 4, deviation characters); the capital of one of them is turned into "ss".
 */
const REMAPPED = /(?![ßς])\p{Changes_When_NFKC_Casefolded}/u;
const CAPITAL_SHARP_S = "\u1e9e";

/**
 * Compares the authority part of a URL as it was typed with what the parser made of it.
 * @param authority text between `//` and the next `/`, `?` or `#`
 * @param hostname canonical `hostname` of the parsed URL
 * @returns the first fault, or undefined when the two differ in letter case and IDNA encoding alone
 */
export function findHostFault(authority: string, hostname: string): HostFault | undefined {
  if (authority.includes("@")) return fault("userinfo", "must not carry a user name or password");
  const { host, port } = splitPort(authority);
  if (!/^(?:|0|[1-9]\d*)$/.test(port)) return fault("port", "must have its port as a plain decimal number");
  if (host.includes("%")) return fault("host-escape", "must not have percent-escapes in its host");
  const labels = host.replace(/\.$/, "").split(".");
  if (labels.includes("")) return fault("host-label", "must not have an empty label in its host");
  if (!isAscii(host)) return findIdnFault(host, hostname);
  if (host.toLowerCase() === hostname) return undefined;
  return fault("host-number", `must have its host in the usual spelling: ${hostname}`);
}

/** Letter case and composition may differ; every other change would mean that another name was typed than is opened. */
function findIdnFault(host: string, hostname: string): HostFault | undefined {
  const folded = foldCase(host.normalize("NFC")).normalize("NFC");
  const typed = host.split(".");
  const parsed = hostname.split(".");
  const encoded = typed.every((label, i) =>
    isAscii(label) ? label.toLowerCase() === parsed[i] : parsed[i]?.startsWith("xn--"),
  );
  const kept = !REMAPPED.test(folded) && !OTHER_DOTS.test(host) && !host.includes(CAPITAL_SHARP_S);
  if (kept && encoded && typed.length === parsed.length && !turnsAscii(host)) return undefined;
  return fault("host-character", "must not have invisible or look-alike characters in its host");
}

/** A few signs are the same as an ASCII character to Unicode, the Kelvin sign and K for one. */
function turnsAscii(host: string): boolean {
  return Array.from(host).some((sign) => !isAscii(sign) && isAscii(foldCase(sign.normalize("NFC"))));
}

function splitPort(authority: string): { host: string; port: string } {
  const [, host = authority, port = ""] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(authority) ?? [];
  return { host, port };
}

/** Character by character, as IDNA does it: the whole-word rule for the Greek final sigma must not apply. */
function foldCase(text: string): string {
  return Array.from(text, (character) => character.toLowerCase()).join("");
}

function isAscii(text: string): boolean {
  return /^\p{ASCII}*$/u.test(text);
}

function fault(rule: HostRule, detail: string): HostFault {
  return { rule, detail };
}
