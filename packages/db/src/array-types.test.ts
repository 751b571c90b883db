import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { arrayLiteral, createArrayTypes } from "./array-types.ts";

describe("an array literal", () => {
  test.each([
    ["nothing", [], "{}"],
    ["no value", [null], "{NULL}"],
    ["a text that reads NULL", ["NULL", "null"], '{"NULL","null"}'],
    ["a comma, a brace and a blank", ["a,b", "{c}", " d "], '{"a,b","{c}"," d "}'],
    ["quotes and backslashes", ['"', "\\", '\\"'], '{"\\"","\\\\","\\\\\\""}'],
    ["an empty text", [""], '{""}'],
    ["numbers", [0, Number.MAX_SAFE_INTEGER], '{"0","9007199254740991"}'],
  ])("holds %s", (_case, values, literal) => {
    expect(arrayLiteral(values)).toBe(literal);
  });

  test("is read back as what it was", () => {
    const { textArray } = createArrayTypes(Number);
    const texts = fc.array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("NULL", '"', "\\", ",", "{}")));
    fc.assert(fc.property(texts, (values) => expect(textArray.parse(textArray.serialize(values))).toEqual(values)));
  });

  test("of booleans is read as booleans: each text would count as true", () => {
    expect(createArrayTypes(Number).booleanArray.parse("{t,f,t}")).toEqual([true, false, true]);
  });

  test("that is a text already stays as it is", () => {
    expect(createArrayTypes(Number).textArray.serialize("{a}")).toBe("{a}");
  });
});
