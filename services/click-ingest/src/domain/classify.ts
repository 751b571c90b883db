import type { Click } from "@linkfence/contracts";

/** What a click was made with; unknown is an empty text. */
export type Classes = { browser: string; os: string; device: string; bot: boolean };

/** Tells what a click was made with. */
export function classify(_click: Click): Classes {
  return { browser: "", os: "", device: "", bot: false };
}
