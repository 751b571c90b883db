import { describe, expect, test } from "@jest/globals";
import { redact, renderRecord } from "./logger.ts";

const line = (message: string, fields: Record<string, unknown> = {}) =>
  renderRecord({ time: "2026-01-01T00:00:00.000Z", level: "info", service: "test", message, fields });

describe("a log record", () => {
  test.each([
    ["line breaks", '\r\n{"level":"error","message":"forged"}'],
    ["next line", "a\u0085b"],
    ["line and paragraph separators", "a\u2028b\u2029c"],
    ["escape sequences", "\u001b[31mred"],
    ["C1 controls and DEL", "\u009b31m\u007f"],
    ["NUL", "a\u0000b"],
  ])("with %s from outside stays one line, and says the same", (_what, hostile) => {
    const text = line("x", { path: hostile });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there are control characters
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    expect(JSON.parse(text)).toMatchObject({ level: "info", message: "x", path: hostile });
  });

  test("cannot have its own fields replaced", () => {
    const text = line("x", { level: "error", message: "y", service: "z", time: "0" });
    expect(JSON.parse(text)).toEqual({
      time: "2026-01-01T00:00:00.000Z",
      level: "info",
      service: "test",
      message: "x",
    });
  });

  test("shows of an error its name, message and code, and nothing that a driver attached", () => {
    const error = Object.assign(new Error("refused"), {
      code: "42P01",
      query: "SELECT secret",
      parameters: ["secret"],
    });
    expect(JSON.parse(line("x", { error })).error).toBe("Error: refused (42P01)");
  });

  test("is cut where a field is too long", () => {
    expect(line("x", { path: "a".repeat(1_000_000) }).length).toBeLessThan(3000);
  });
});

describe("secrets", () => {
  test.each([
    ["linkfence_AbCdEfGhIjKl_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG", "linkfence_AbCdEfGhIjKl_[redacted]"],
    ["postgres://u:hunter2@h/db refused", "postgres://u:[redacted]@h/db refused"],
    ["nothing here", "nothing here"],
  ])("in %p are taken out", (text, shown) => {
    expect(redact(text)).toBe(shown);
    expect(JSON.parse(line(text)).message).toBe(shown);
  });
});
