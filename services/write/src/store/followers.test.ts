// Who waits for whom, and what they hear of one another.
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createFollowers, type Ending } from "./followers.ts";

const LONG_MS = 60_000;
const nothing = () => undefined;
const everything = (ending: Ending<string>) => ending;
const turn = () => new Promise(setImmediate);

/** Callers of one name, whose work ends when the test says so. */
function createCallers() {
  const followers = createFollowers<string>();
  const begun: string[] = [];
  const ends = new Map<string, (ending: Ending<string>) => void>();

  function call(
    caller: string,
    hear: (ending: Ending<string>) => Ending<string> | undefined = nothing,
    timeoutMs = LONG_MS,
  ) {
    const work = () => {
      begun.push(caller);
      return new Promise<string>((resolve, reject) => {
        ends.set(caller, (ending) => ("error" in ending ? reject(ending.error) : resolve(ending.value)));
      });
    };
    const result = followers.follow("name", { timeoutMs, work, hear });
    result.catch(() => {}); // told where it is awaited
    return result;
  }

  /** Ends somebody's work, and lets everybody act on that. */
  async function end(caller: string, ending: Ending<string> = { value: `${caller} is done` }) {
    ends.get(caller)?.(ending);
    await turn();
  }

  return { ...followers, begun, call, end };
}

describe("callers of one name", () => {
  test("begin one after the other, in the order of their coming", async () => {
    const { call, end, begun, waiting } = createCallers();
    const results = ["a", "b", "c"].map((caller) => call(caller));
    expect([[...begun], waiting()]).toEqual([["a"], 2]);
    await end("a");
    expect([[...begun], waiting()]).toEqual([["a", "b"], 1]);
    await end("b");
    await end("c");
    expect(await Promise.all(results)).toEqual(["a is done", "b is done", "c is done"]);
    expect(waiting()).toBe(0);
  });

  test("who hears what they came for need not do it again; the others go on waiting", async () => {
    const { call, end, begun } = createCallers();
    const deaf = [call("a"), call("b"), call("c")];
    const heard = [call("d", everything), call("e", everything)];
    await end("a");
    expect(await Promise.all(heard)).toEqual(["a is done", "a is done"]);
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    await end("c");
    expect(await Promise.all(deaf)).toEqual(["a is done", "b is done", "c is done"]);
  });

  test("a failure moves one of them on, not all", async () => {
    const { call, end, begun, waiting } = createCallers();
    const listen = (ending: Ending<string>) => ("value" in ending ? ending : undefined);
    const results = Array.from({ length: 200 }, (_, n) => call(`${n}`, listen));
    await end("0", { error: new Error("lost") });
    expect([[...begun], waiting()]).toEqual([["0", "1"], 198]);
    await end("1");
    await expect(results[0]).rejects.toThrow("lost");
    expect(await Promise.all(results.slice(1))).toEqual(Array(199).fill("1 is done"));
    expect(begun).toEqual(["0", "1"]);
  });

  test("who waits too long is told so; whoever waited behind them comes to their turn all the same", async () => {
    const { call, end, waiting } = createCallers();
    const [first, late, last] = [call("a"), call("b", nothing, 1), call("c")];
    expect(await late).toBeUndefined();
    expect(waiting()).toBe(1);
    await end("a");
    await end("c");
    expect(await Promise.all([first, last])).toEqual(["a is done", "c is done"]);
  });

  test("who waits too long behind one that failed is told of the failure", async () => {
    const { call, end } = createCallers();
    const [failing, next, late] = [call("a"), call("b"), call("c", nothing, 20)];
    await end("a", { error: new Error("lost") });
    await expect(late).rejects.toThrow("lost");
    await end("b");
    await expect(failing).rejects.toThrow("lost");
    expect(await next).toBe("b is done");
  });

  test("a process that stood still longer than the wait reads the answer that lies ready before it gives up", async () => {
    const { call, end } = createCallers();
    const both = [call("a"), call("b", everything, 5)];
    // The answer comes in the loop's next phase, when the timer has been due for long.
    setImmediate(() => void end("a"));
    for (const until = performance.now() + 20; performance.now() < until; );
    expect(await Promise.all(both)).toEqual(["a is done", "a is done"]);
  });

  test("those of other names do not wait; who comes when all are done begins at once", async () => {
    const { call, end, follow, begun } = createCallers();
    const first = call("a");
    expect(await follow("other", { timeoutMs: 1, work: async () => "at once", hear: nothing })).toBe("at once");
    await end("a");
    expect(await first).toBe("a is done");
    const second = call("b");
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(await second).toBe("b is done");
  });
});

test("however callers come, end, fail and hear, one works at a time and everybody gets an end", async () => {
  const caller = fc.record({
    fails: fc.boolean(),
    hears: fc.constantFrom(nothing, everything),
    comes: fc.nat(3),
    takes: fc.nat(3),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(caller, { maxLength: 20 }), async (callers) => {
      const followers = createFollowers<string>();
      let working = 0;
      const pause = async (turns: number) => {
        for (let i = 0; i < turns; i += 1) await turn();
      };
      const one = async ({ fails, hears, comes, takes }: (typeof callers)[number], n: number) => {
        await pause(comes);
        const work = async () => {
          working += 1;
          expect(working).toBe(1);
          await pause(takes);
          working -= 1;
          if (fails) throw new Error(`${n}`);
          return `${n}`;
        };
        return followers.follow("name", { timeoutMs: LONG_MS, work, hear: hears });
      };
      const ends = await Promise.allSettled(callers.map(one));
      for (const [n, ended] of ends.entries()) {
        if (callers[n]?.hears === everything) continue;
        if (ended.status === "fulfilled") expect([ended.value, callers[n]?.fails]).toEqual([`${n}`, false]);
        else expect([ended.reason.message, callers[n]?.fails]).toEqual([`${n}`, true]);
      }
      expect(ends.filter((ended) => ended.status === "fulfilled" && ended.value === undefined)).toEqual([]);
      expect(followers.waiting()).toBe(0);
    }),
    { numRuns: 200 },
  );
});
