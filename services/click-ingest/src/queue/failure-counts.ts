/** Different codes that are counted by name: more than a service ever meets, and few enough for a metrics page. */
const CODES_MAX = 50;

/** Counts failed attempts by SQLSTATE or driver code; an error without one is `none`, the 51st code and on `other`. */
export function createFailureCounts() {
  const counts = new Map<string, number>();

  function add(code: string): void {
    const name = code === "" ? "none" : code;
    const key = counts.has(name) || counts.size < CODES_MAX ? name : "other";
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }

  return { add, read: (): Record<string, number> => Object.fromEntries(counts) };
}
