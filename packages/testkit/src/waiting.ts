import { setTimeout as pause } from "node:timers/promises";

/** What is waited for comes within seconds; this only ends a broken test. */
const PATIENCE_MS = 60_000;
/** Often enough for what is counted in hundreds of milliseconds, and a few per cent of a core. */
const LOOK_EVERY_MS = 5;

/**
 * Asks until `find` answers something that is neither false nor undefined, and returns it; for what sends no event. Rejects
 * after a minute.
 * @param what named in the error
 */
export async function waitFor<T>(what: string, find: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  const endsAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await find();
    if (found !== false && found !== undefined) return found as Exclude<T, false | undefined>;
    if (performance.now() > endsAt) throw new Error(`waited ${PATIENCE_MS / 1000} s in vain for ${what}`);
    await pause(LOOK_EVERY_MS);
  }
}

/** Waits until `holds` says so, and names it as it is written where it never does. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await waitFor(String(holds), holds);
}

/** Does `act` again and again, in order, until `signal` says that it is enough. Rejects with what `act` rejects with. */
export async function keepOn(signal: AbortSignal, act: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await act();
    await pause(LOOK_EVERY_MS);
  }
}

/** Does `act` again and again, in order, for as long as `work` lasts. Rejects with what either of them rejects with. */
export async function meanwhile<T>(act: () => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const acting = keepOn(over.signal, act);
  acting.catch(() => {}); // told below
  try {
    return await work();
  } finally {
    over.abort();
    await acting;
  }
}
