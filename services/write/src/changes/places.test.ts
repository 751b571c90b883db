import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { createPlaces } from "./places.ts";

test("never more than the bounds are taken, and a place that was given back can be taken again", () => {
  const act = fc.record({ owner: fc.constantFrom("ann", "bob", "carl"), leave: fc.boolean() });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const refused = { process: 0, owner: 0 };
      const places = createPlaces({ what: "streams", total: 5, perOwner: 3, refused });
      const open: { owner: string; leave: () => void }[] = [];
      let expected = { process: 0, owner: 0 };
      for (const { owner, leave } of acts) {
        const own = open.filter((place) => place.owner === owner);
        if (leave) {
          const [first] = own;
          // Giving it back twice gives one place back.
          first?.leave();
          first?.leave();
          if (first) open.splice(open.indexOf(first), 1);
        } else if (own.length >= 3 || open.length >= 5) {
          expect(() => places.take(owner)).toThrow(expect.objectContaining({ code: "overloaded" }));
          expected =
            own.length >= 3
              ? { ...expected, owner: expected.owner + 1 }
              : { ...expected, process: expected.process + 1 };
        } else open.push({ owner, leave: places.take(owner) });
        expect(places.count()).toBe(open.length);
      }
      expect(refused).toEqual(expected);
    }),
  );
});
