import { q1, q1c, q2, q2c, q3, q4 } from "./acknowledgement.ts";
import { f1, f1c, f2, f2c } from "./ages.ts";
import { r1 } from "./answers.ts";
import { nc2, s1, s2, s3, s4 } from "./clicks.ts";
import { r12 } from "./clocks.ts";
import { a1, a2, a3, nc1 } from "./creation.ts";
import { x3, x3c, x3n } from "./exported-files.ts";
import { x1, x2, x2c, x4, x5, x5c, x6 } from "./exports.ts";
import { q6, q6b, q6c } from "./first-revocation.ts";
import { p1 } from "./fragments.ts";
import { r9 } from "./history.ts";
import { h1, h1c } from "./http-caches.ts";
import { l3, l3c } from "./idempotency.ts";
import { s5 } from "./kills.ts";
import { c5, c5c, c6, c6c } from "./ledger.ts";
import { c7, c7c, c8, c8c, c9, c10 } from "./ledger-database.ts";
import { r8 } from "./listener.ts";
import { l1, l1c, l2 } from "./listing.ts";
import { q7, q7c, q7t } from "./nemesis.ts";
import { nc4, r5 } from "./order.ts";
import { d1, d2 } from "./outage.ts";
import { nc3, r4, r4m, r4mc, r4v, r4vc, r6, r6c } from "./overtaken.ts";
import { realUrls } from "./real-urls.ts";
import type { EvidenceCase } from "./report.ts";
import { r10 } from "./restart.ts";
import { q5, q5c } from "./rolling.ts";
import { q8, q8c } from "./simulated.ts";
import { c1, c2, c2c } from "./spool.ts";
import { c3, c3c, c4, c4c } from "./spool-disk.ts";
import { t1, t1c, t2, t2c, t3 } from "./statistics.ts";
import { r7, r7c, r7s, r7sc } from "./suspended.ts";
import { v1 } from "./targets.ts";
import { e1, r2, r2n, r3, r11 } from "./windows.ts";

/** Every experiment, in the order in which they run; each group has a test file of its name. */
export const groups = {
  "real-urls": [realUrls],
  targets: [v1],
  creation: [a1, a2, a3, nc1],
  listing: [l1, l1c, l2],
  idempotency: [l3, l3c],
  answers: [r1],
  windows: [r2, r2n, r3, r11, e1],
  overtaken: [r4, nc3, r4v, r4vc, r4m, r4mc, r6, r6c],
  ages: [f1, f1c, f2, f2c],
  order: [r5, nc4],
  acknowledgement: [q1, q1c, q2, q2c, q3, q4],
  rolling: [q5, q5c],
  "first-revocation": [q6, q6c, q6b],
  nemesis: [q7, q7c, q7t],
  simulated: [q8, q8c],
  suspended: [r7, r7c, r7s, r7sc],
  restart: [r10],
  listener: [r8],
  history: [r9],
  clocks: [r12],
  outage: [d1, d2],
  clicks: [s1, s2, s3, s4, nc2],
  kills: [s5],
  spool: [c1, c2, c2c, c3, c3c, c4, c4c],
  exports: [x1, x2, x2c, x4, x5, x5c, x6],
  "exported-files": [x3, x3c, x3n],
  ledger: [c5, c5c, c6, c6c, c7, c7c, c8, c8c, c9, c10],
  statistics: [t1, t1c, t2, t2c, t3],
  "http-caches": [h1, h1c],
  fragments: [p1],
} satisfies Record<string, readonly EvidenceCase[]>;

export const catalogue: readonly EvidenceCase[] = Object.values(groups).flat();
