import { describe, expect, test } from "@jest/globals";
import { decideClicks, decideSums, isOwner, type Parameters } from "./stats-request.ts";
import { readValue } from "./value-name.ts";

const ruleOf = (decision: ReturnType<typeof decideSums | typeof decideClicks>) =>
  decision.ok ? null : `${decision.fault.field}: ${decision.fault.rule}`;

describe("a request for sums", () => {
  test("cuts at its steps, in quarters of an hour", () => {
    expect(decideSums({ start: "1800000", steps: "1,96,4", top: "10" })).toEqual({
      ok: true,
      request: { edges: [2, 3, 99, 103], top: 10, stepped: true },
    });
  });

  test("without steps is about all there is", () => {
    const decision = decideSums({});
    expect(decision.ok && decision.request).toMatchObject({ top: 0, stepped: false });
  });

  test.each<[Parameters, string]>([
    [{ start: "0" }, "steps: steps"],
    [{ steps: "1" }, "start: quarter"],
    [{ start: "1", steps: "1" }, "start: quarter"],
    [{ start: "-900000", steps: "1" }, "start: quarter"],
    [{ start: "9e5", steps: "1" }, "start: quarter"],
    ...["", "0", "1,0", "1,,1", "-1", "1.5", "1,", "x", `${"4,".repeat(1000)}4`, "9999999"].map(
      (steps): [Parameters, string] => [{ start: "0", steps }, "steps: steps"],
    ),
    [{ start: "0", steps: "1", top: "11" }, "top: range"],
    [{ top: "-1" }, "top: range"],
  ])("is refused: %j by the rule %s", (parameters, rule) => expect(ruleOf(decideSums(parameters))).toBe(rule));
});

describe("a request for clicks", () => {
  const id = "0199f1e8-0000-7000-8000-000000000000";
  test("has a limit, and a click that it starts behind", () => {
    expect(decideClicks({ limit: "1001", before: id })).toEqual({ ok: true, request: { limit: 1001, before: id } });
    expect(decideClicks({})).toEqual({ ok: true, request: { limit: 100, before: null } });
  });

  test.each<[Parameters, string]>([
    [{ limit: "0" }, "limit: range"],
    [{ limit: "1002" }, "limit: range"],
    [{ before: "x" }, "before: uuid"],
    [{ before: id.toUpperCase() }, "before: uuid"],
  ])("is refused: %j by the rule %s", (parameters, rule) => expect(ruleOf(decideClicks(parameters))).toBe(rule));
});

test("an owner is a text that can be stored", () => {
  expect(["ann", "é😀", "a".repeat(200)].map(isOwner)).toEqual([true, true, true]);
  expect([undefined, "", "a\0b", "\ud800", "a".repeat(201)].map(isOwner)).toEqual([false, false, false, false, false]);
});

test("a value that is the word for the rest is told from the rest", () => {
  expect(["~other", "~~other", "other.example", "~", "a~other"].map(readValue)).toEqual([
    "other",
    "~other",
    "other.example",
    "~",
    "a~other",
  ]);
});
