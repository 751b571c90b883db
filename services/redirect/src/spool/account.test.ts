import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  ACCOUNT_BLOCK,
  type Account,
  accountPosition,
  beginAccount,
  decodeAccount,
  decodeHeader,
  encodeAccount,
  encodeHeader,
  HEADER_BLOCK,
  mayBeLost,
  type SegmentHeader,
  UnknownFormat,
} from "./account.ts";
import { makeDrops, NO_DROPS } from "./drops.ts";
import { encodeFrames } from "./frame.ts";

const MAX = Number.MAX_SAFE_INTEGER;
const account: Account = {
  incarnation: "7f1d1c0e-3d2b-4f7e-9a5f-0d9d3c1b2a10",
  first: { incarnation: "0b1e5a52-6d55-4e0c-8f6c-b7c7f3a0a001", at: 1_700_000_000_000 },
  seq: 4,
  reserved: 20_000,
  ended: 12_000,
  unspooled: 30,
  drops: { ...NO_DROPS, "ring-full": 20 },
  lostEarlier: 7,
  dropsEarlier: { ...NO_DROPS, "ring-full": 2, damaged: 1 },
};
const header: SegmentHeader = {
  ...{ incarnation: account.incarnation, number: 3, spooled: 12_100, unspooled: 25 },
  drops: { ...NO_DROPS, "ring-full": 25 },
};

/** The file after two writings. */
function written(...accounts: readonly Account[]): Buffer {
  const file = Buffer.alloc(2 * ACCOUNT_BLOCK);
  for (const each of accounts) encodeAccount(each).copy(file, accountPosition(each.seq));
  return file;
}

describe("the account of a process", () => {
  test("is read as the later one of two was written", () => {
    const later = { ...account, seq: 5, ended: 13_000 };
    expect(decodeAccount(written(account, later))).toEqual(expect.objectContaining(later));
    expect(decodeAccount(written(later, { ...account, seq: 6 }))?.seq).toBe(6);
    expect(decodeAccount(Buffer.alloc(0))).toBeNull();
  });

  test("survives its own torn writing, at every byte, and every bit turned over: the one before it counts then", () => {
    const later = encodeAccount({ ...account, seq: 5 });
    for (let cut = 0; cut < later.length; cut += 1) {
      const file = written({ ...account, seq: 3 }, account);
      later.copy(file, accountPosition(5), 0, cut);
      expect([4, 5]).toContain(decodeAccount(file)?.seq);
    }
    for (let bit = 0; bit < ACCOUNT_BLOCK * 8; bit += 1) {
      const file = written(account, { ...account, seq: 5 });
      const at = accountPosition(5) + (bit >> 3);
      file[at] = (file[at] as number) ^ (1 << (bit & 7));
      expect([4, 5]).toContain(decodeAccount(file)?.seq);
    }
  });

  test("fits its block, as a header does, whatever its numbers are", () => {
    const drops = makeDrops(() => MAX);
    const most = { incarnation: account.incarnation, unspooled: MAX, drops };
    const first = { ...account.first, at: MAX };
    expect(
      encodeAccount({ ...most, first, seq: MAX, reserved: MAX, ended: MAX, lostEarlier: MAX, dropsEarlier: drops }),
    ).toHaveLength(1024);
    expect(encodeHeader({ ...most, number: MAX, spooled: MAX })).toHaveLength(HEADER_BLOCK);
    expect(decodeHeader(encodeHeader(header))).toEqual(expect.objectContaining(header));
  });

  test("of a later version is refused, and not taken for damage", () => {
    const file = Buffer.alloc(2 * ACCOUNT_BLOCK);
    encodeFrames(['{"format":2}']).copy(file);
    expect(() => decodeAccount(file)).toThrow(UnknownFormat);
    expect(() => decodeHeader(file)).toThrow(UnknownFormat);
  });
});

describe("what may be lost after an unclean end", () => {
  test("is what was reserved, less what has ended or was found", () => {
    expect(mayBeLost(account, [])).toBe(20_000 - 12_000);
    expect(mayBeLost(account, [{ header, clicks: 40 }])).toBe(20_000 - 12_140 - 30);
    expect(mayBeLost({ ...account, unspooled: 0 }, [{ header, clicks: 40 }])).toBe(20_000 - 12_140 - 25);
    const foreign = { ...header, incarnation: "another", spooled: 19_999 };
    expect(
      mayBeLost(account, [
        { header: foreign, clicks: 1 },
        { header: null, clicks: 9 },
      ]),
    ).toBe(8000);
  });

  test("adds up over processes, as the drops do, each as far as it was written down", () => {
    const next = beginAccount({ incarnation: "next", at: 9 }, account, [{ header, clicks: 0 }]);
    expect(next).toMatchObject({
      incarnation: "next",
      first: account.first,
      seq: 5,
      ended: 0,
      unspooled: 0,
      drops: NO_DROPS,
    });
    expect(next.lostEarlier).toBe(7 + 20_000 - 12_100 - 30);
    expect(next.dropsEarlier).toEqual({ ...NO_DROPS, "ring-full": 27, damaged: 1 });
    const first = { incarnation: "first", at: 8 };
    expect(beginAccount(first, null, [])).toMatchObject({ first, seq: 1, lostEarlier: 0, dropsEarlier: NO_DROPS });
  });

  test("is never less than what is missing, whatever of a process was written down before its end", () => {
    const count = fc.nat({ max: 1000 });
    fc.assert(
      fc.property(count, count, count, count, count, (spooled, dropped, missing, late, unwritten) => {
        const accepted = spooled + dropped + missing;
        const told: Account = {
          ...account,
          reserved: accepted + late,
          ended: Math.max(0, dropped - unwritten),
          unspooled: Math.max(0, dropped - unwritten),
        };
        const bound = mayBeLost(told, [{ header: { ...header, spooled: 0, unspooled: 0 }, clicks: spooled }]);
        expect(bound).toBeGreaterThanOrEqual(missing);
        expect(bound).toBeLessThanOrEqual(missing + late + unwritten);
      }),
    );
  });
});
