// Clocks that are wrong, without a change to the product: a module that a process loads before the service exchanges its
// wall clock, and a function that takes the place of the database's clock wherever the schema asks for it.
import type { TestDatabase } from "@linkfence/testkit";
import type { RedirectProcess } from "./redirect-process.ts";

type Sql = TestDatabase["sql"];

export const HOUR_MS = 3_600_000;

/** Settings of a process whose wall clock is that much ahead; `setBack` sets it back. A service knows no SIGWINCH. */
export function wrongClock(aheadMs: number): Record<string, string> {
  const module = `const now = Date.now;
    let ahead = ${aheadMs};
    Date.now = () => now() + ahead;
    process.on("SIGWINCH", () => {
      ahead -= ${HOUR_MS};
      process.stdout.write('{"level":"info","message":"clock set back"}\\n');
    });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}` };
}

/** Sets the wall clock of a process that was started with `wrongClock` back by an hour, once. */
export async function setBack({ service }: RedirectProcess): Promise<void> {
  service.kill("SIGWINCH");
  await service.logged(({ message }) => message === "clock set back");
}

export type DatabaseClock = {
  /** From now on the database's clock is that much ahead of the machine's. */
  set(aheadMs: number): Promise<void>;
  /** Whether the view that a redirect process reads asked for the time. */
  asked: boolean;
};

/** What PostgreSQL writes where a definition asks for the time. */
const CLOCK = /\b(?:clock_timestamp|now)\(\)/g;

/** Exchanges the clock of a main database, wherever a view or a function of its schema asks for the time. */
export async function exchangeClock(sql: Sql): Promise<DatabaseClock> {
  const definitions = await sql<{ name: string; text: string }[]>`
    SELECT relname AS name, format('CREATE OR REPLACE VIEW %I AS %s', relname, pg_get_viewdef(oid)) AS text
      FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace`;
  await sql.begin(async (tx) => {
    await tx`CREATE TABLE wrong_clock AS SELECT interval '0' AS ahead`;
    await tx`CREATE FUNCTION told_time() RETURNS timestamptz LANGUAGE sql VOLATILE
      RETURN clock_timestamp() + (SELECT ahead FROM wrong_clock)`;
    for (const { text } of definitions) {
      const exchanged = text.replace(CLOCK, "public.told_time()");
      if (exchanged !== text) await tx.unsafe(exchanged);
    }
  });
  return {
    set: async (aheadMs) => void (await sql`UPDATE wrong_clock SET ahead = ${`${aheadMs} milliseconds`}::interval`),
    asked: definitions.some(({ name, text }) => name === "redirect_link" && text.search(CLOCK) >= 0),
  };
}
