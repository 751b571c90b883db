import { describe, expect, test } from "@jest/globals";
import { judgeConfirmation, type Wanted } from "./confirmation.ts";
import { fenceMs } from "./fence.ts";
import type { Instance, Sight } from "./registry.ts";

const TTL_MS = 1000;
const wanted: Wanted = { seq: 7, committedAt: 100, epoch: "a", unseenTtlMs: 5000 };

function instance(over: Partial<Instance> = {}): Instance {
  return { id: "i", address: "h:1", ttlMs: TTL_MS, followsFeed: true, epoch: "a", appliedSeq: 7, renewals: 1, ...over };
}

function sight(instances: readonly Instance[], over: Partial<Sight> = {}): Sight {
  return { sentAt: 110, receivedAt: 112, epoch: "a", settled: true, head: 7, instances, ...over };
}

describe("a revocation is confirmed at once", () => {
  test.each([
    ["when everybody has acknowledged it", [instance(), instance({ id: "j", appliedSeq: 9 })]],
    ["when nobody is registered", []],
  ])("%s", (_what, instances) => {
    const acknowledged = instances.length;
    expect(judgeConfirmation(wanted, sight(instances), TTL_MS, 115)).toEqual({
      ...{ kind: "confirmed", by: "acknowledged", afterMs: 15, missing: [] },
      instances: { total: acknowledged, acknowledged },
    });
  });
});

describe("a revocation has to wait for the time to pass", () => {
  test.each<[string, Sight | null]>([
    ["while one has not acknowledged it", sight([instance(), instance({ appliedSeq: 6 })])],
    ["while one has acknowledged another history's", sight([instance({ epoch: "b" })])],
    ["while one does not follow the log, whatever it says", sight([instance({ followsFeed: false })])],
  ])("%s", (_what, seen) => {
    const late = 100 + fenceMs(TTL_MS);
    expect(judgeConfirmation(wanted, seen, TTL_MS, late - 1)).toMatchObject({ kind: "waiting", fencedAt: late });
    expect(judgeConfirmation(wanted, seen, TTL_MS, late)).toMatchObject({ kind: "confirmed", by: "ttl" });
  });

  test("while the history is not settled, for the longest TTL that anybody may have who is not seen", () => {
    const seen = sight([instance()], { settled: false });
    const late = 100 + fenceMs(5000);
    expect(judgeConfirmation(wanted, seen, TTL_MS, late - 1)).toMatchObject({
      kind: "waiting",
      fencedAt: late,
      missing: [],
    });
    expect(judgeConfirmation(wanted, seen, TTL_MS, late)).toMatchObject({ kind: "confirmed", by: "ttl" });
    const longer = judgeConfirmation(wanted, seen, 9000, late);
    expect(longer).toMatchObject({ kind: "waiting", fencedAt: 100 + fenceMs(9000) });
  });
});

describe("a sight that was sent before the commit was known", () => {
  test("says how long it takes at the most by the TTLs of its rows", () => {
    const before = sight([instance({ appliedSeq: 6, ttlMs: 60_000 })], { sentAt: 99 });
    const told = judgeConfirmation(wanted, before, 0, 101);
    expect(told).toMatchObject({ kind: "waiting", fencedAt: 100 + fenceMs(60_000) });
  });

  const old = sight([instance({ appliedSeq: 8 })], { sentAt: 99 });
  test.each([
    ["none at all", null, { total: 0, acknowledged: 0 }],
    ["an old one", old, { total: 1, acknowledged: 1 }],
    ["one of another history", { ...old, epoch: "before" }, { total: 0, acknowledged: 0 }],
  ])("confirms nothing, however late it is: %s", (_what, seen, instances) => {
    expect(judgeConfirmation(wanted, seen, TTL_MS, 1e9)).toMatchObject({ kind: "waiting", instances });
  });

  test("names who was there, for a call that does not wait for another one", () => {
    const there = instance({ appliedSeq: 6 });
    const verdict = judgeConfirmation(wanted, sight([there], { sentAt: 99 }), 0, 100);
    expect(verdict).toMatchObject({ kind: "waiting", instances: { total: 1, acknowledged: 0 }, missing: [there] });
  });

  test("of another history says nothing of a failover", () => {
    expect(judgeConfirmation(wanted, { ...old, epoch: "before" }, TTL_MS, 115).kind).toBe("waiting");
  });
});

test("in another history nothing is confirmed: the revocation may be lost", () => {
  const seen = sight([instance({ epoch: "b" })], { epoch: "b" });
  expect(judgeConfirmation(wanted, seen, TTL_MS, 1e9)).toEqual({ kind: "history-changed" });
});

test("the TTLs of the sight that is judged count, whatever was seen before it", () => {
  const seen = sight([instance({ appliedSeq: 6 })]);
  const fencedAt = 100 + fenceMs(TTL_MS);
  expect(judgeConfirmation(wanted, seen, 0, fencedAt - 1)).toMatchObject({ kind: "waiting", fencedAt });
  expect(judgeConfirmation(wanted, seen, 0, fencedAt)).toMatchObject({ kind: "confirmed", by: "ttl" });
});
