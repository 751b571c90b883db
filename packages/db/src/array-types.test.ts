import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { parse } from "postgres-array";
import { arrayLiteral, createArrayTypes, parseArray } from "./array-types.ts";

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

describe("the quick way to read an array", () => {
  /** As array_out writes an element: quoted only where it has to be (PostgreSQL manual, section 8.15.6). */
  const written = (value: string | null) => {
    if (value === null) return "NULL";
    return value === "" || /[{}",\\\s]|^null$/i.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
  };
  const plain = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/);
  const element = fc.oneof(
    { weight: 8, arbitrary: plain },
    fc.constantFrom(null, "NULL", "null", "NULLS", "", '"', "\\", ",", "{}", "a b", "\u00e9"),
    fc.string({ unit: "binary" }),
  );
  const read = (text: string) => text.length;

  test("reads what the library reads, whatever the elements are", () => {
    const array = fc.array(element, { maxLength: 30 }).map((values) => `{${values.map(written).join()}}`);
    const shifted = array.map((text) => (text === "{}" ? text : `[0:${text.length}]=${text}`));
    const nested = fc.array(array, { minLength: 1, maxLength: 3 }).map((texts) => `{${texts.join()}}`);
    fc.assert(
      fc.property(fc.oneof(array, shifted, nested), (text) => {
        expect(parseArray(text, read)).toEqual(parse(text, read));
        expect(parseArray(text, String)).toEqual(parse(text, String));
      }),
    );
  });

  test.each(["", "{", "}", "a", "{a", "a}", "[0:1]=a"])("leaves what is no array (%p) to the library", (text) => {
    const outcome = (of: () => unknown) => {
      try {
        return of();
      } catch (error) {
        return String(error);
      }
    };
    expect(outcome(() => parseArray(text, read))).toEqual(outcome(() => parse(text, read)));
  });
});
