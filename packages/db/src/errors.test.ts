import { describe, expect, test } from "@jest/globals";
import { classifyError, DeadlineExceeded, errorCode, PoolOverloaded } from "./errors.ts";

const withCode = (code: string) => Object.assign(new Error("from the driver"), { code });

describe("the kind of a database error", () => {
  test.each([
    ["23505", "conflict"],
    ["40001", "retryable"],
    ["40P01", "retryable"],
    ["55P03", "retryable"],
    ["08006", "unavailable"],
    ["53100", "unavailable"],
    ["53300", "unavailable"],
    ["57014", "unavailable"],
    ["57P01", "unavailable"],
    ["57P03", "unavailable"],
    ["25006", "unavailable"],
    ["55000", "unavailable"],
    ["CONNECTION_CLOSED", "unavailable"],
    ["CONNECT_TIMEOUT", "unavailable"],
    ["ECONNREFUSED", "unavailable"],
    ["22021", "fatal"],
    ["23514", "fatal"],
    ["42P01", "fatal"],
    ["22P02", "fatal"],
    ["54000", "fatal"],
    ["54001", "fatal"],
  ])("%s is %s", (code, kind) => {
    expect(classifyError(withCode(code))).toBe(kind);
  });

  test("a queue of notifications that is full means unavailable, whatever the language; a row too wide for its index does not", () => {
    const withMessage = (message: string) => Object.assign(new Error(message), { code: "54000" });
    for (const told of ["too many notifications in the NOTIFY queue", "zu viele Benachrichtigungen in NOTIFY-Schlange"])
      expect(classifyError(withMessage(told))).toBe("unavailable");
    expect(classifyError(withMessage("index row size 3000 exceeds btree version 4 maximum 2704"))).toBe("fatal");
  });

  test("a missed deadline and a full pool mean unavailable", () => {
    expect(classifyError(new DeadlineExceeded(5))).toBe("unavailable");
    expect(classifyError(new PoolOverloaded(5))).toBe("unavailable");
  });

  test("what is no database error is fatal, and has no code", () => {
    for (const thing of [null, undefined, "text", 7, {}, new Error("x")]) {
      expect(classifyError(thing)).toBe("fatal");
      expect(errorCode(thing)).toBe("");
    }
  });
});
