// Times in statements: numbers of quarters of an hour since 1970, as roll-ups are kept by those.
import type { Sql } from "@linkfence/db";
import type { SumsRequest } from "../domain/stats-request.ts";

export type Bounded = Pick<SumsRequest, "edges">;

/** Of a quarter of an hour. */
export const SECONDS = 900;

/** The ends of a period, in quarters. */
export function endsOf({ edges }: Bounded): { from: number; to: number } {
  return { from: edges[0] ?? 0, to: edges.at(-1) ?? 0 };
}

/** The beginning of a quarter. */
export function time(sql: Sql, quarter: number) {
  return sql`to_timestamp(${quarter * SECONDS}::float8)`;
}

/** Hours that have a quarter of the period. */
export function hours(sql: Sql, request: Bounded) {
  const { from, to } = endsOf(request);
  return sql`hour >= ${time(sql, from - (from % 4))} AND hour < ${time(sql, to)}`;
}
