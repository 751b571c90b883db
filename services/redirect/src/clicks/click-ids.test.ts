import { randomFillSync } from "node:crypto";
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { validate, version } from "uuid";
import { createClickIds } from "./click-ids.ts";

const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
const TIME = fc.integer({ min: 0, max: 2 ** 48 - 1 });

test("an id is a UUID of version 7 that carries its time to the millisecond, whatever the random bytes", () => {
  fc.assert(
    fc.property(fc.array(TIME, { minLength: 1, maxLength: 30 }), fc.integer({ min: 0, max: 255 }), (times, byte) => {
      const newId = createClickIds((bytes) => bytes.fill(byte));
      for (const at of times) {
        const id = newId(at);
        expect([validate(id), version(id), timeOf(id)]).toEqual([true, 7, at]);
      }
    }),
  );
});

test("ids sort in the order in which they were made, within a millisecond too, and more of them than are drawn for at once", () => {
  fc.assert(
    fc.property(
      TIME,
      fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 3000, maxLength: 3000 }),
      (first, steps) => {
        const newId = createClickIds(randomFillSync);
        let at = Math.min(first, 2 ** 47);
        const ids = steps.map((step) => {
          at += step;
          return newId(at);
        });
        expect([...ids].sort()).toEqual(ids);
        expect(new Set(ids).size).toBe(ids.length);
      },
    ),
    { numRuns: 20 },
  );
});

test("two processes make other ids for the same time, and each draws anew when what it drew is used up", () => {
  let drawn = 0;
  const count = (bytes: Uint8Array) => {
    drawn += 1;
    randomFillSync(bytes);
  };
  const [one, other] = [createClickIds(count), createClickIds(count)];
  const ids = Array.from({ length: 2000 }, () => [one(1), other(1)]).flat();
  expect(new Set(ids).size).toBe(4000);
  expect(drawn).toBe(4);
});

test("no two ids share their random bytes: with the counter taken away they still differ", () => {
  let next = 0;
  const newId = createClickIds((bytes) => {
    for (let index = 0; index < bytes.length; index += 1) bytes[index] = index % 6 === 5 ? next++ % 256 : 0;
  });
  const tails = Array.from({ length: 200 }, () => newId(5).slice(-2));
  expect(new Set(tails).size).toBe(200);
});
