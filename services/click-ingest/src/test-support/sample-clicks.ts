import { randomBytes } from "node:crypto";
import type { Click } from "@linkfence/contracts";

const DAY_MS = 86_400_000;
/** Yesterday at noon, UTC, and some ms: any time of a day that is kept does, as long as id and click agree on it. */
export const SAMPLE_AT = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS / 2 + 123;

/** A UUIDv7 with a given time and random rest (RFC 9562 section 5.7). */
export function newClickId(at = SAMPLE_AT): string {
  const time = at.toString(16).padStart(12, "0");
  const random = randomBytes(10).toString("hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-a${random.slice(3, 6)}-${random.slice(6, 18)}`;
}

/** A good click; `changes` make it another, or a bad one. */
export function sampleClick(changes: Partial<Click> = {}): Click {
  const at = changes.at ?? SAMPLE_AT;
  return {
    id: newClickId(at),
    code: "sample",
    version: 1,
    at,
    referrerHost: "news.example",
    userAgent: "Mozilla/5.0 (X11; Linux x86_64)",
    ...changes,
  };
}

/** Where clicks come from that come as they are. */
export const sampleOrigin = (sender = "test") => ({ sender, payloadOf: (click: Click) => JSON.stringify(click) });

export function sampleClicks(count: number, changes: Partial<Click> = {}): Click[] {
  return Array.from({ length: count }, () => sampleClick(changes));
}
