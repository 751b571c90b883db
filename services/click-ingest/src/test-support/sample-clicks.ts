import { randomBytes } from "node:crypto";
import type { Click } from "@linkfence/contracts";

/** 2026-01-31T12:00:00.123Z: any time does, as long as id and click agree on it. */
export const SAMPLE_AT = 1_769_860_800_123;

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

export function sampleClicks(count: number, changes: Partial<Click> = {}): Click[] {
  return Array.from({ length: count }, () => sampleClick(changes));
}
