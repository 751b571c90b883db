import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { encodeFrames, findFrames } from "../spool/frame.ts";
import { createBatchBody } from "./batch-body.ts";

const dropped = { incarnation: "one", since: 1, totals: [{ reason: "ring-full", total: 3 }] };
const makeBody = createBatchBody("redirect-1");
const groups = fc.array(
  fc.array(fc.record({ a: fc.string({ unit: "grapheme" }), n: fc.integer() }), { minLength: 1 }),
  {
    minLength: 1,
  },
);
const encode = (clicks: readonly object[]) => encodeFrames(clicks.map((click) => JSON.stringify(click)));

test("a batch has all clicks of all groups, in order, and the groups stay as they are", () => {
  fc.assert(
    fc.property(groups, (lists) => {
      const frames = lists.map(encode);
      const before = frames.map((each) => Buffer.from(each));
      expect(JSON.parse(makeBody(frames, dropped).toString())).toEqual({
        sender: "redirect-1",
        dropped,
        clicks: lists.flat(),
      });
      expect(frames).toEqual(before);
    }),
  );
});

test("what was read back from a damaged segment, in stretches, makes the same batch", () => {
  const clicks = [{ a: "one" }, { a: "two" }, { a: "three" }];
  const damaged = Buffer.concat([encode(clicks.slice(0, 2)), Buffer.from("damage"), encode(clicks.slice(2))]);
  const { runs } = findFrames(damaged, { last: true });
  expect(runs).toHaveLength(2);
  expect(makeBody(runs, dropped)).toEqual(makeBody([encode(clicks)], dropped));
});

test("memory that is given is used where it is large enough, and nothing of what was in it is sent", () => {
  const groups = [[{ a: "x".repeat(9) }], [{ a: "y".repeat(99) }, { a: "z" }], [{ a: "w" }]].map(encode);
  let room: Buffer | undefined;
  for (const frames of groups) {
    const body = makeBody([frames], dropped, room);
    expect(body).toEqual(makeBody([frames], dropped));
    if (room !== undefined) expect(body.buffer).toBe(room.buffer);
    room = Buffer.from(body.buffer);
    room.fill("?");
  }
  expect(makeBody([groups[0] as Buffer], dropped, Buffer.alloc(3)).length).toBeGreaterThan(3);
});
