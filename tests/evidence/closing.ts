/** Takes how to undo what was just opened. */
type Later = (close: () => unknown) => void;

/**
 * Does some work, and afterwards closes what it opened, the latest first, each of them even where another one fails.
 * Rejects with what the work rejects with, or else with the first failure to close.
 */
export async function closingAfterwards<T>(work: (later: Later) => Promise<T>): Promise<T> {
  const closes: (() => unknown)[] = [];
  const [done] = await Promise.allSettled([work((close) => closes.unshift(close))]);
  const failures: unknown[] = done.status === "rejected" ? [done.reason] : [];
  for (const close of closes) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (done.status === "rejected" || failures.length > 0) throw failures[0];
  return done.value;
}
