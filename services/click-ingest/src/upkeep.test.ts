import { describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { createQuietLogger } from "./test-support/quiet-logger.ts";
import { createUpkeep } from "./upkeep.ts";

describe("a chore", () => {
  test("is done at once and again, and no more once it is stopped", async () => {
    let times = 0;
    const work = async () => {
      times += 1;
    };
    const upkeep = createUpkeep([{ name: "sweep", everyMs: 1, work }], createQuietLogger());
    upkeep.start();
    await until(() => times >= 3);
    await upkeep.stop();
    const done = times;
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(times).toBe(done);
  });

  test("that fails is tried again, told once, and told when it is done again; others go on", async () => {
    let times = 0;
    let others = 0;
    const logger = createQuietLogger();
    const chores = [
      {
        name: "sweep",
        everyMs: 1,
        async work() {
          times += 1;
          if (times <= 3) throw new Error("locked");
        },
      },
      {
        name: "other",
        everyMs: 1,
        async work() {
          others += 1;
        },
      },
    ];
    const upkeep = createUpkeep(chores, logger);
    upkeep.start();
    await until(() => times >= 5 && others >= 5);
    await upkeep.stop();
    expect(upkeep.stats()).toEqual({ failures: { sweep: 3, other: 0 } });
    expect(logger.entries.map(({ message }) => message)).toEqual([
      "a chore failed, and is tried again",
      "a chore is done again",
    ]);
  });

  test("under way when it is stopped is waited for", async () => {
    let end: () => void = () => {};
    let ended = false;
    const work = () =>
      new Promise<void>((resolve) => {
        end = () => {
          ended = true;
          resolve();
        };
      });
    const upkeep = createUpkeep([{ name: "sweep", everyMs: 1, work }], createQuietLogger());
    upkeep.start();
    const stopped = upkeep.stop().then(() => ended);
    end();
    expect(await stopped).toBe(true);
  });
});
