import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  ACCOUNT_BLOCK,
  type Account,
  accountPosition,
  beginAccount,
  CUTS_MAX,
  countMissing,
  decodeAccount,
  decodeHeader,
  encodeAccount,
  encodeHeader,
  HEADER_BLOCK,
  isBoundUnknown,
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
  home: "1234567-1700000000000000000",
  seq: 4,
  clean: false,
  reserved: 20_000,
  settled: 12_000,
  unspooled: 30,
  left: 50,
  front: { base: 2, own: 3, number: 3, from: 512, clicks: 0 },
  cuts: [],
  drops: { ...NO_DROPS, "ring-full": 20 },
  lostEarlier: 7,
  dropsEarlier: { ...NO_DROPS, "ring-full": 2, damaged: 1 },
  unknownEarlier: 1,
};
const header: SegmentHeader = {
  ...{ incarnation: account.incarnation, number: 3, spooled: 12_000, unspooled: 25, cuts: [] },
  drops: { ...NO_DROPS, "ring-full": 25 },
};
const segment = { number: 3, header, clicks: 40 };

/** The file after two writings. */
function written(...accounts: readonly Account[]): Buffer {
  const file = Buffer.alloc(2 * ACCOUNT_BLOCK);
  for (const each of accounts) encodeAccount(each).copy(file, accountPosition(each.seq));
  return file;
}

describe("the account of a process", () => {
  test("is read as the later one of two was written", () => {
    const later = { ...account, seq: 5, settled: 13_000 };
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
    const cuts = Array.from({ length: CUTS_MAX }, () => [MAX, MAX] as const);
    const first = { ...account.first, at: MAX };
    const front = { base: MAX, own: MAX, number: MAX, from: MAX, clicks: MAX };
    const counts = { reserved: MAX, settled: MAX, unspooled: MAX, left: MAX, lostEarlier: MAX, unknownEarlier: MAX };
    // The longest number of a file and the longest time of its birth that a file system gives.
    const home = `${2n ** 64n - 1n}-${BigInt(MAX) * 1000n}`;
    expect(
      encodeAccount({ ...account, first, home, seq: MAX, ...counts, front, cuts, drops, dropsEarlier: drops }),
    ).toHaveLength(1024);
    const { incarnation } = account;
    expect(encodeHeader({ incarnation, number: MAX, spooled: MAX, unspooled: MAX, drops, cuts })).toHaveLength(
      HEADER_BLOCK,
    );
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
  test("is what its process answered for, less what has ended or was found at the front or behind it", () => {
    expect(mayBeLost(account, [])).toBe(50 + 20_000 - 12_000 - 30);
    expect(mayBeLost(account, [segment])).toBe(8020 - 40);
    // A header may know more of what was in no segment than the account does.
    expect(mayBeLost({ ...account, unspooled: 0 }, [segment])).toBe(8050 - 25 - 40);
    const before = { ...segment, number: 2 };
    const damaged = { number: 4, header: null, clicks: 9 };
    expect(mayBeLost(account, [before, segment, damaged])).toBe(8020 - 49);
  });

  test("is unknown where more was found than was reserved, or where segments are of a process without an account", () => {
    expect(isBoundUnknown(account, [segment])).toBe(false);
    expect(isBoundUnknown(account, [{ ...segment, clicks: 7970 }])).toBe(false);
    expect(isBoundUnknown(account, [{ ...segment, clicks: 7971 }])).toBe(true);
    expect(isBoundUnknown({ ...account, clean: true }, [{ ...segment, clicks: 7971 }])).toBe(false);
    const another = { ...header, incarnation: "another" };
    expect(isBoundUnknown(account, [{ ...segment, number: 2, header: another }])).toBe(false);
    expect(isBoundUnknown(account, [{ ...segment, number: 4, header: another }])).toBe(true);
  });

  test("is known to be missing as far as the segments beside a gap tell, and after an end in good order all of it", () => {
    const all = (number: number, spooled: number, clicks: number) => ({
      ...{ number, header: { ...header, number, spooled }, clicks, all: clicks },
    });
    expect(countMissing(account, [all(3, 12_000, 40), all(4, 12_040, 10), all(5, 12_050, 1)])).toBe(0);
    expect(countMissing(account, [all(3, 12_000, 40), all(5, 12_050, 1)])).toBe(10);
    expect(countMissing(account, [all(3, 12_000, 40), { ...all(5, 12_050, 1), header: null }])).toBe(0);
    const ended = { ...account, clean: true, reserved: 12_081 };
    expect(countMissing(ended, [all(3, 12_000, 40), all(5, 12_050, 1)])).toBe(60);
    expect(countMissing({ ...ended, left: 0 }, [all(3, 12_000, 40), all(5, 12_050, 1)])).toBe(10);
  });

  const beginning = {
    ...{ start: { incarnation: "next", at: 9 }, home: account.home, front: account.front, cuts: [], left: 40 },
    ...{ former: account, isUnknown: false, segments: [segment] },
  };

  test("adds up over processes, as the drops do, each as far as it was written down", () => {
    const next = beginAccount(beginning);
    expect(next).toMatchObject({
      incarnation: "next",
      first: account.first,
      seq: 5,
      clean: false,
      settled: 0,
      left: 40,
    });
    expect(next).toMatchObject({ drops: NO_DROPS, lostEarlier: 7 + 7980, unknownEarlier: 1 });
    expect(next.dropsEarlier).toEqual({ ...NO_DROPS, "ring-full": 27, damaged: 1 });
    const none = { ...beginning, former: null, segments: [] };
    const first = { first: beginning.start, seq: 1, lostEarlier: 0, dropsEarlier: NO_DROPS };
    expect(beginAccount(none)).toMatchObject({ ...first, unknownEarlier: 0 });
    expect(beginAccount({ ...none, isUnknown: true })).toMatchObject({ ...first, unknownEarlier: 1 });
  });

  test("of a copied directory goes by another name, with what the last process alone may have lost and dropped", () => {
    const copy = beginAccount({ ...beginning, home: "another file" });
    expect(copy).toMatchObject({ first: beginning.start, lostEarlier: 7980, unknownEarlier: 0 });
    expect(copy.dropsEarlier).toEqual({ ...NO_DROPS, "ring-full": 25 });
  });

  test("is never less than what is missing, whatever of a process was written down before its end", () => {
    const count = fc.nat({ max: 1000 });
    fc.assert(
      fc.property(count, count, count, count, count, count, (ended, waiting, dropped, missing, late, unwritten) => {
        const accepted = ended + waiting + dropped + missing;
        const unspooled = Math.max(0, dropped - unwritten);
        const told: Account = { ...account, left: 0, reserved: accepted + late, settled: ended, unspooled };
        const bound = mayBeLost(told, [{ ...segment, header: { ...header, unspooled: 0 }, clicks: waiting }]);
        expect(bound).toBeGreaterThanOrEqual(missing);
        expect(bound).toBeLessThanOrEqual(missing + late + unwritten);
      }),
    );
  });
});
