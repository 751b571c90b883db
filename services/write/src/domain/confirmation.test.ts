import { expect, test } from "@jest/globals";
import { judgeConfirmation } from "./confirmation.ts";
import { fenceMs } from "./fence.ts";
import type { Sight } from "./registry.ts";

const TTL = 60_000;
const sight: Sight = {
  sentAt: 1000,
  receivedAt: 1001,
  epoch: "e1",
  settled: true,
  head: 5,
  instances: [{ id: "i1", address: "a:1", ttlMs: TTL, followsFeed: true, epoch: "e1", appliedSeq: 4, renewals: 1 }],
};
const wanted = { seq: 5, committedAt: 900, epoch: "e1", unseenTtlMs: TTL };

test("the TTLs of the sight that is judged count, whatever was seen before it", () => {
  const fencedAt = 900 + fenceMs(TTL);
  expect(judgeConfirmation(wanted, sight, 0, 2000)).toMatchObject({ kind: "waiting", fencedAt });
  expect(judgeConfirmation(wanted, sight, 0, fencedAt)).toMatchObject({ kind: "confirmed", by: "ttl" });
});
