import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type History, judgeLink, type Rules, type Visit, type Word } from "./checker.ts";

const TARGET = "https://example.com/a";
const WITHIN_MS = 100;
const rules: Rules = { confirmedWithinMs: WITHIN_MS, hindered: [], ended: true };
const visit = (sentAt: number, status: number, target: string | null = null): Visit => ({
  ...{ instance: 0, sentAt, answeredAt: sentAt + 1, status, target },
});
const old = (sentAt: number) => visit(sentAt, 302, TARGET);
const word = (sentAt: number, answeredAt: number, over: Partial<Word> = {}): Word => ({
  ...{ sentAt, answeredAt, confirmedBy: null, withinMs: null, ...over },
});
const confirmed = (sentAt: number, answeredAt: number) => word(sentAt, answeredAt, { confirmedBy: "ttl" });

const revoked: History = {
  ...{ code: "a", target: TARGET, revokedFrom: 10, words: [confirmed(10, 50)] },
  ...{ visits: [], last: [visit(200, 410)] },
};
const living: History = { ...revoked, revokedFrom: null, words: [], last: [old(200)] };
const rulesBroken = (history: History, given = rules) => judgeLink(history, given).map(({ rule }) => rule);

describe("a revoked link", () => {
  test.each<[string, Visit[]]>([
    ["the old target until the confirmation has come", [old(1), old(30), old(50)]],
    ["410 from its revocation on", [visit(10, 410), visit(11, 410), visit(60, 410)]],
    ["503, and connections that are cut, at any time", [visit(1, 503), visit(60, 503), visit(60, 0)]],
  ])("may be answered with %s", (_what, visits) => {
    expect(rulesBroken({ ...revoked, visits })).toEqual([]);
  });

  test.each<[string, Visit, string]>([
    ["the old target to who asked after the confirmation", old(50.1), "old target after the confirmation"],
    ["another target", visit(20, 302, "https://example.com/b"), "no answer that there may be"],
    ["404", visit(20, 404), "no answer that there may be"],
    ["500", visit(60, 500), "no answer that there may be"],
    ["410 before anybody called", visit(8.9, 410), "gone before it was revoked"],
  ])("must not be answered with %s", (_what, wrong, rule) => {
    expect(rulesBroken({ ...revoked, visits: [wrong] })).toEqual([rule]);
  });

  test("must be in force by the time that an answer named", () => {
    const words = [word(10, 20, { withinMs: 15 }), confirmed(30, 50)];
    expect(rulesBroken({ ...revoked, words, visits: [old(35)] })).toEqual([]);
    expect(rulesBroken({ ...revoked, words, visits: [old(35.1)] })).toEqual(["old target after it had to be in force"]);
  });

  test("must be confirmed in time, if nothing hindered who decides it", () => {
    const at = (answeredAt: number) => ({ ...revoked, words: [word(10, 20), confirmed(30, answeredAt)] });
    expect(rulesBroken(at(10 + WITHIN_MS))).toEqual([]);
    expect(rulesBroken(at(10.1 + WITHIN_MS))).toEqual(["confirmed late"]);
    expect(rulesBroken(at(500), { ...rules, hindered: [{ from: 0, to: 9 }] })).toEqual(["confirmed late"]);
    expect(rulesBroken(at(500), { ...rules, hindered: [{ from: 0, to: 10 }] })).toEqual([]);
    expect(rulesBroken(at(500), { ...rules, hindered: [{ from: 400, to: 600 }] })).toEqual([]);
  });

  test("must be confirmed, and gone, when all is over; of a run that was broken off nothing is said", () => {
    const lost = { ...revoked, words: [word(10, 20)], last: [old(15)] };
    expect(rulesBroken(lost)).toEqual(["never confirmed", "not as it should be at the end"]);
    expect(rulesBroken(lost, { ...rules, ended: false })).toEqual([]);
    expect(rulesBroken({ ...revoked, words: [], last: [visit(200, 410)] })).toEqual(["never confirmed"]);
  });
});

describe("a link that nobody revoked", () => {
  test("leads on", () => {
    expect(rulesBroken({ ...living, visits: [old(1), old(500)] })).toEqual([]);
  });

  test("must not be called gone, nor be unreachable when all is over", () => {
    expect(rulesBroken({ ...living, visits: [visit(5, 410)] })).toEqual(["gone before it was revoked"]);
    expect(rulesBroken({ ...living, last: [visit(5, 503)] })).toEqual(["not as it should be at the end"]);
  });
});

const moment = fc.integer({ min: 0, max: 1000 });
/** What a product that keeps its promise may show: each answer is right at some moment between question and answer. */
const honest = fc
  .record({
    calledAt: moment,
    commitMs: fc.nat(50),
    confirmMs: fc.nat(40),
    asks: fc.array(fc.record({ sentAt: moment, ms: fc.nat(300), readMs: fc.nat(300), failed: fc.boolean() })),
  })
  .map(({ calledAt, commitMs, confirmMs, asks }) => {
    const inForceAt = calledAt + commitMs;
    const visits = asks.map(({ sentAt, ms, readMs, failed }): Visit => {
      const answeredAt = sentAt + ms;
      if (failed) return { instance: 1, sentAt, answeredAt, status: 503, target: null };
      const gone = Math.min(sentAt + readMs, answeredAt) >= inForceAt;
      return { instance: 1, sentAt, answeredAt, status: gone ? 410 : 302, target: gone ? null : TARGET };
    });
    const words = [confirmed(calledAt, inForceAt + confirmMs)];
    return { ...revoked, revokedFrom: calledAt, words, visits, last: [visit(5000, 410)] };
  });

describe("whatever happened", () => {
  test("a product that keeps its promise is accused of nothing", () => {
    fc.assert(fc.property(honest, (history) => expect(judgeLink(history, rules)).toEqual([])));
  });

  test("one answer with the old target among them is found", () => {
    fc.assert(
      fc.property(honest, fc.nat(1000), fc.nat(), (history, laterMs, place) => {
        const confirmedAt = history.words[0]?.answeredAt ?? 0;
        const visits = history.visits.toSpliced(place % (history.visits.length + 1), 0, old(confirmedAt + 1 + laterMs));
        expect(rulesBroken({ ...history, visits })).toEqual(["old target after the confirmation"]);
      }),
    );
  });
});
