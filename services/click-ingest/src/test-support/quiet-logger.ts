import type { Logger } from "@linkfence/service-shell";

export type Entry = { level: string; message: string; fields: Record<string, unknown> };

/** A logger that keeps its records for the test to look at. */
export function createQuietLogger(): Logger & { entries: Entry[] } {
  const entries: Entry[] = [];
  const write =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      entries.push({ level, message, fields });
    };
  return { entries, error: write("error"), warn: write("warn"), info: write("info"), debug: write("debug") };
}
