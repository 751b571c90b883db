import type { Click } from "@linkfence/contracts";
import type { Isolated, Suspect } from "../queue/suspects.ts";
import type { Stored } from "../queue/writer.ts";

/** What the database says, by its SQLSTATE. */
export const failure = (code: string) => Object.assign(new Error("made up"), { code });

/** A table in memory: refuses a batch with a click whose code is `poison`, and fails as often as it is told to. */
export function createFakeTable() {
  const rows = new Map<string, Click>();
  const dead = new Map<string, Click>();
  const failures: string[] = [];
  const batches: number[] = [];
  /** Clicks of each step that looked for those that are refused. */
  const steps: number[] = [];
  return {
    rows,
    dead,
    failures,
    batches,
    steps,
    async isolate(_sender: string, suspects: readonly Suspect[]): Promise<Isolated> {
      steps.push(suspects.length);
      await null;
      const code = failures.shift();
      if (code !== undefined) throw failure(code);
      const isolated: Isolated = new Map();
      for (const suspect of suspects) {
        const { click } = suspect;
        const isBad = click.code === "poison";
        const fate = isBad ? "buried" : click.code === "late" ? "late" : rows.has(click.id) ? "before" : "new";
        if (fate === "new") rows.set(click.id, click);
        if (isBad) dead.set(click.id, click);
        isolated.set(suspect, { fate, sqlstate: isBad ? "22021" : null });
      }
      return isolated;
    },
    async insert(clicks: readonly Click[]): Promise<Stored> {
      batches.push(clicks.length);
      await null;
      const code = failures.shift();
      if (code !== undefined) throw failure(code);
      if (clicks.some((click) => click.code === "poison")) throw failure("22021");
      const late = new Set(clicks.filter((click) => click.code === "late").map(({ id }) => id));
      const fresh = clicks.filter(({ id }) => !rows.has(id) && !late.has(id));
      for (const click of fresh) rows.set(click.id, click);
      return { fresh: new Set(fresh.map(({ id }) => id)), late };
    },
  };
}
