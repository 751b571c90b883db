import { describe, expect, test } from "@jest/globals";
import { Problem } from "@linkfence/contracts";
import { Type } from "typebox";
import { createValidator } from "./validator.ts";

const check = createValidator(
  Type.Object(
    {
      name: Type.String({ maxLength: 3 }),
      list: Type.Optional(Type.Array(Type.Integer())),
      few: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
      none: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    },
    { additionalProperties: false },
  ),
);

function faultOf(value: unknown, prefix?: string) {
  try {
    check(value, prefix);
    return undefined;
  } catch (error) {
    return error instanceof Problem ? { code: error.code, ...error.errors[0] } : error;
  }
}

describe("what came from outside", () => {
  test("is returned as it came when it fits", () => {
    const value = { name: "abc", list: [1], none: null };
    expect(check(value)).toBe(value);
  });

  test.each([
    [null, "body", "type"],
    [[], "body", "type"],
    ["x", "body", "type"],
    [{}, "name", "required"],
    [{ name: 7 }, "name", "type"],
    [{ name: "abcd" }, "name", "maxLength"],
    [{ name: "a", more: 1 }, "more", "additionalProperties"],
    [{ name: "a", list: [1, "2"] }, "list[1]", "type"],
    [{ name: "a", none: 5 }, "none", "type"],
    [{ name: "a", few: -1 }, "few", "minimum"],
    [{ name: "a", few: 10 }, "few", "maximum"],
    [{ name: "a", "we/ird~": 1 }, "we/ird~", "additionalProperties"],
  ])("is refused as %j with the field %s and the rule %s", (value, field, rule) => {
    expect(faultOf(value)).toMatchObject({ code: "invalid-request", field, rule });
  });

  test.each([-1, 10, 1.5, "7"])("of a number that is out of its range (%j) is told the range", (few) => {
    expect(faultOf({ name: "a", few })).toMatchObject({ detail: "must be a whole number from 0 to 9" });
  });

  test("is named by its place in a batch", () => {
    expect(faultOf({ name: 7 }, "links[3]")).toMatchObject({ field: "links[3].name" });
  });
});
