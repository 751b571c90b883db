import { describe, expect, test } from "@jest/globals";
import { describedRoutes } from "./api-routes.ts";
import { EVERY_ANSWER_FIELDS, EVERY_CALL_PROBLEMS, KEYED_ANSWER_FIELDS, KEYED_CALL_PROBLEMS } from "./every-call.ts";

const calls = Object.entries(describedRoutes()).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, call]) => ({ name: `${method} ${path}`, ...call })),
);

describe("what every call answers", () => {
  test("is not said again by a call", () => {
    const common = new Set([...EVERY_CALL_PROBLEMS, ...KEYED_CALL_PROBLEMS]);
    const repeated = calls.flatMap(({ name, describe: { problems } }) =>
      problems.filter((problem) => common.has(problem)).map((problem) => `${name}: ${problem}`),
    );
    expect(calls.length).toBeGreaterThan(0);
    expect(repeated).toEqual([]);
  });

  test("has its header fields described, and no call describes them otherwise", () => {
    const fields = Object.keys({ ...EVERY_ANSWER_FIELDS, ...KEYED_ANSWER_FIELDS });
    expect(fields).toEqual([
      "Cache-Control",
      "X-Content-Type-Options",
      "X-Request-Id",
      "RateLimit-Policy",
      "RateLimit",
    ]);
    for (const { describe: description } of calls)
      for (const { headers = {} } of Object.values(description.answers))
        expect(Object.keys(headers).filter((name) => fields.includes(name))).toEqual([]);
  });
});
