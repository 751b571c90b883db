import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { encodeFrames, frameOf, readFrames } from "../spool/frame.ts";
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

test("what was read back from a segment, click by click, makes the same batch", () => {
  const frames = encode([{ a: "one" }, { a: "two" }, { a: "three" }]);
  const { payloads } = readFrames(frames, { last: true });
  expect(makeBody(payloads.map(frameOf), dropped)).toEqual(makeBody([frames], dropped));
});
