// Which hosts are not on the public internet. Works on canonical host names alone, as the URL parser returns them:
// by then every spelling of an address (decimal, octal, hexadecimal, shortened) has become one.

/** IPv4 blocks as first address and prefix length: the special-purpose registry (RFC 6890), multicast and reserved. */
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/** localhost (RFC 6761), mDNS (RFC 6762), home networks (RFC 8375), and ICANN's private-use name. */
const PRIVATE_NAMES = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/;

/**
 * Says whether a host is loopback, private, link-local or otherwise not public. A name without a dot counts as private:
 * it means something inside a local network only. Names are not resolved.
 * @param hostname `hostname` of a WHATWG URL, IPv6 in brackets; a trailing dot makes no difference
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/\.$/, "");
  if (host.startsWith("[")) return isPrivateV6(parseV6(host.slice(1, -1)));
  if (isV4(host)) return isPrivateV4(parseV4(host));
  return !host.includes(".") || PRIVATE_NAMES.test(host);
}

/** Says whether a canonical host is this machine itself, by address or by name. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/\.$/, "");
  if (host === "[::1]" || host === "[::]") return true;
  if (isV4(host)) return isLoopbackV4(parseV4(host));
  if (!host.startsWith("[")) return /(?:^|\.)localhost$/.test(host);
  const groups = parseV6(host.slice(1, -1));
  return isMappedV4(groups) && isLoopbackV4(embeddedV4(groups, 6));
}

/** Connecting to 0.0.0.0 reaches this machine too. */
function isLoopbackV4(address: number): boolean {
  return address >>> 24 === 127 || address === 0;
}

function isV4(host: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

function isPrivateV4(address: number): boolean {
  return PRIVATE_V4.some(([block, prefix]) => address >>> (32 - prefix) === parseV4(block) >>> (32 - prefix));
}

function isPrivateV6(groups: readonly number[]): boolean {
  const [first = 0, second = 0, third = 0] = groups;
  // Addresses that carry an IPv4 address lead where that one leads: mapped and compatible, 6to4, NAT64.
  if (isMappedV4(groups) || groups.slice(0, 6).every((group) => group === 0)) return isPrivateV4(embeddedV4(groups, 6));
  if (first === 0x2002) return isPrivateV4(embeddedV4(groups, 1));
  if (first === 0x64 && second === 0xff9b) return third !== 0 || isPrivateV4(embeddedV4(groups, 6));
  // Unique local fc00::/7, link-local fe80::/10, the former site-local fec0::/10, multicast ff00::/8.
  return first >>> 9 === 0xfc00 >>> 9 || first >>> 6 >= 0xfe80 >>> 6;
}

function isMappedV4(groups: readonly number[]): boolean {
  return groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
}

function embeddedV4(groups: readonly number[], at: number): number {
  return (((groups[at] ?? 0) << 16) | (groups[at + 1] ?? 0)) >>> 0;
}

function parseV4(text: string): number {
  return text.split(".").reduce((address, part) => address * 256 + Number(part), 0);
}

/** Eight 16-bit groups of an address in the parser's own spelling: hexadecimal, at most one `::`, no dotted part. */
function parseV6(text: string): number[] {
  const [head = "", tail] = text.split("::");
  const read = (part: string) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16)));
  const [left, right] = [read(head), read(tail ?? "")];
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
}
