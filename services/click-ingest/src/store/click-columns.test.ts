import { describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import fc from "fast-check";
import { sampleClick } from "../test-support/sample-clicks.ts";
import { prepareColumns, toColumns } from "./click-columns.ts";

/** Texts that a literal has to quote or escape, among usual ones. */
const text = fc.oneof(fc.constantFrom("", "NULL", '"', "\\", ",", "{}", "a,b"), fc.string({ maxLength: 5 }));
const click = fc
  .record({
    referrerHost: fc.option(text),
    owner: fc.option(
      text.filter((owner) => owner !== ""),
      { nil: undefined },
    ),
  })
  .map(({ referrerHost, owner }) => sampleClick({ referrerHost, ...(owner === undefined ? {} : { owner }) }));
const requests = fc.array(fc.array(click, { minLength: 1, maxLength: 4 }), { maxLength: 5 });
/** The same clicks, of which nothing is prepared. */
const strangers = (clicks: readonly Click[]) => clicks.map((each) => ({ ...each }));

describe("what was prepared of clicks", () => {
  test("says what the clicks say, whichever of them are stored, and in whatever order", () => {
    fc.assert(
      fc.property(requests, fc.func(fc.boolean()), fc.boolean(), (lists, keeps, backwards) => {
        for (const list of lists) prepareColumns(list);
        const all = backwards ? lists.flat().reverse() : lists.flat();
        for (const stored of [all, all.filter(keeps), all.slice(1), all.slice(0, -1), [...all, ...all]])
          expect(toColumns(stored)).toEqual(toColumns(strangers(stored)));
      }),
    );
  });

  test("is used: of a list that was prepared it is the very same", () => {
    const list = [sampleClick(), sampleClick()];
    prepareColumns(list);
    expect(toColumns(list)).toBe(toColumns(list));
    expect(toColumns(strangers(list))).not.toBe(toColumns(strangers(list)));
  });

  test("control: a list that was prepared by its first click alone would be stored for one that only begins so", () => {
    const list = [sampleClick(), sampleClick()];
    prepareColumns(list);
    const [first] = list;
    const other = [first as Click, sampleClick()];
    expect(toColumns(other).ids).not.toBe(toColumns(list).ids);
    expect(toColumns(other)).toEqual(toColumns(strangers(other)));
  });

  test("may be of no clicks at all", () => {
    prepareColumns([]);
    expect(new Set(Object.values(toColumns([])))).toEqual(new Set(["{}"]));
  });
});
