import { expect, test } from "@jest/globals";
import { createClickRate } from "./click-rate.ts";

test("clicks are many while more come than the bound, by what came in the last half second", () => {
  let [clock, count] = [0, 0];
  const isBusy = createClickRate(
    () => count,
    100,
    () => clock,
  );
  const after = (ms: number, clicks: number) => {
    clock += ms;
    count += clicks;
    return isBusy();
  };
  expect([after(499, 1000), after(1, 0), after(499, 0), after(1, 50), after(500, 51), after(10_000, 1000)]).toEqual([
    ...[false, true, true, false],
    ...[true, false],
  ]);
});
