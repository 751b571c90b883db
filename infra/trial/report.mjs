// One line for each thing that was looked at, and the sum at the end.
const results = { passed: 0, failed: 0 };

/** Prints `ok` or `FAIL` with what was expected; after a failure also what was seen. Returns whether it held. */
export function check(name, holds, seen = "") {
  results[holds ? "passed" : "failed"] += 1;
  process.stdout.write(
    `${holds ? "ok  " : "FAIL"} ${name}${holds || seen === "" ? "" : `: ${String(seen).slice(0, 500)}`}\n`,
  );
  return holds;
}

/** Prints the sum; the returned number is the exit status. */
export function conclude() {
  process.stdout.write(`${results.passed} passed, ${results.failed} failed\n`);
  return results.failed === 0 ? 0 : 1;
}

/**
 * Asks again until `look` answers true, or the deadline is over.
 * @param look may throw: that counts as no
 * @returns the time it took in ms, or null
 */
export async function until(look, deadlineMs, pauseMs = 100) {
  const start = performance.now();
  for (;;) {
    if (
      await Promise.resolve()
        .then(look)
        .catch(() => false)
    )
      return performance.now() - start;
    if (performance.now() - start > deadlineMs) return null;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
