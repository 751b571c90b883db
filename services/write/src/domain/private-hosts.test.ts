import { BlockList } from "node:net";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { isLoopbackHost, isPrivateHost } from "./private-hosts.ts";

const BLOCKS: readonly [string, number][] = [
  ...([
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
  ] as const),
  ...([
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
  ] as const),
  ...([
    ["224.0.0.0", 4],
    ["240.0.0.0", 4],
  ] as const),
].map(([block, prefix]) => [block, prefix]);

/** The same blocks, judged by Node's own matcher. */
const blocks = new BlockList();
for (const [block, prefix] of BLOCKS) blocks.addSubnet(block, prefix, "ipv4");

const v4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
/** Near the edges of the blocks, where a wrong prefix shows. */
const nearEdges = fc.tuple(
  fc.constantFrom(0, 9, 10, 11, 99, 100, 101, 126, 127, 128, 169, 172, 192, 198, 223, 224, 239, 240, 255),
  fc.constantFrom(0, 15, 16, 17, 18, 19, 20, 31, 32, 63, 64, 127, 128, 167, 168, 169, 253, 254, 255),
  fc.constantFrom(0, 1, 255),
  fc.nat(255),
);

test("an IPv4 address is private exactly when it is in a block, and so is every IPv6 address that carries it", () => {
  fc.assert(
    fc.property(fc.oneof(v4, nearEdges), ([a, b, c, d]) => {
      const address = `${a}.${b}.${c}.${d}`;
      const expected = blocks.check(address, "ipv4");
      const [high, low] = [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)];
      const carriers = [`::ffff:${high}:${low}`, `64:ff9b::${high}:${low}`, `2002:${high}:${low}::1`].map(
        (text) => new URL(`http://[${text}]/`).hostname,
      );
      return [address, ...carriers].every((host) => isPrivateHost(host) === expected);
    }),
    { numRuns: 5000 },
  );
});

describe("an IPv6 address", () => {
  const canonical = (address: string) => new URL(`http://[${address}]/`).hostname;

  test.each([
    ...["::", "::1", "fc00::", "fdff:ffff::1", "fe80::1", "febf::1"],
    ...["fec0::1", "ff02::1", "::7f00:1", "64:ff9b:1::1"],
  ])("such as %s is private", (address) => {
    expect(isPrivateHost(canonical(address))).toBe(true);
  });

  test.each(["2001:db8::1", "2606:4700::1111", "fbff::1", "fe00::1", "1::", "::1:0:0:0", "64:ff9c::7f00:1"])(
    "such as %s is not",
    (address) => {
      expect(isPrivateHost(canonical(address))).toBe(false);
    },
  );
});

describe("a name", () => {
  test.each([
    ...["localhost", "localhost.", "a.localhost", "printer.local", "metadata.google.internal", "nas.home.arpa"],
    // Without a dot a name means something in a local network alone.
    "intranet",
  ])("such as %s is private", (name) => {
    expect(isPrivateHost(name)).toBe(true);
  });

  test.each(["localhost.example", "notlocalhost.example", "mylocal.example", "internal.example", "home.arpa.example"])(
    "such as %s is not private",
    (name) => {
      expect(isPrivateHost(name)).toBe(false);
    },
  );
});

test.each([
  ["127.0.0.1", true],
  ["127.255.255.254", true],
  ["0.0.0.0", true],
  ["[::1]", true],
  ["[::]", true],
  ["[::ffff:7f00:1]", true],
  ["localhost.", true],
  ["a.localhost", true],
  ["10.0.0.1", false],
  ["[fd00::1]", false],
  ["[::ffff:a00:1]", false],
  ["localhost.example", false],
])("%s reaches this machine itself: %s", (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected);
});
