import { arrayLiteral } from "@linkfence/db";
import type { TestDatabase } from "@linkfence/testkit";
import { newClickId } from "./sample-clicks.ts";

/** A click as it is stored: already classified. */
export type StoredClick = {
  at: number;
  code: string;
  owner: string | null;
  referrer: string;
  browser: string;
  os: string;
  device: string;
  country: string;
  bot: boolean;
  prefetch: boolean;
};

const PLAIN: Omit<StoredClick, "at"> = {
  code: "sample",
  owner: null,
  referrer: "",
  browser: "Firefox",
  os: "Linux",
  device: "desktop",
  country: "",
  bot: false,
  prefetch: false,
};

/** Stores clicks by the function that the service stores them by, in days that are made for them. Returns their ids. */
export async function storeClicks(
  { sql }: Pick<TestDatabase, "sql">,
  clicks: readonly (Pick<StoredClick, "at"> & Partial<StoredClick>)[],
): Promise<string[]> {
  const whole = clicks.map((click) => ({ ...PLAIN, ...click, id: newClickId(click.at) }));
  const days = [...new Set(whole.map(({ at }) => new Date(at).toISOString().slice(0, 10)))];
  for (const day of days) await sql`SELECT attach_click_day(${day}::text::date)`;
  const column = (name: keyof (typeof whole)[number]) =>
    arrayLiteral(whole.map((click) => (click[name] === null ? null : String(click[name]))));
  await sql`
    SELECT store_clicks(${column("id")}::text::uuid[], ${arrayLiteral(whole.map(() => 1))}::text::bigint[],
                        ${column("at")}::text::bigint[], ${column("code")}::text::text[], ${column("owner")}::text::text[],
                        ${column("referrer")}::text::text[], ${column("browser")}::text::text[],
                        ${column("os")}::text::text[], ${column("device")}::text::text[],
                        ${column("country")}::text::text[], ${column("bot")}::text::boolean[],
                        ${column("prefetch")}::text::boolean[], 100)`;
  return whole.map(({ id }) => id);
}
