import { stat } from "node:fs/promises";
import { afterEach, expect, jest, test } from "@jest/globals";
import { createOperations } from "./operations.ts";

const troubles: string[] = [];
afterEach(() => {
  jest.useRealTimers();
  troubles.length = 0;
});

const create = () => createOperations((what) => void troubles.push(what));
/** As a process that is stopped and goes on: neither timers nor what has ended are looked at meanwhile. */
const stopFor = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test("an operation that ends while the process stands still, far beyond its deadline, is no late one", async () => {
  const operations = create();
  const asked = operations.run("look", stat("/"), undefined, 200);
  stopFor(300);
  expect(await asked).not.toBeNull();
  expect([troubles, operations.stuck()]).toEqual([[], false]);
});

test("control: a timer alone, of the same time, comes before the end of the operation is heard", async () => {
  const heard: string[] = [];
  const asked = stat("/").then(() => heard.push("operation"));
  const timer = new Promise<void>((resolve) => setTimeout(resolve, 200)).then(() => heard.push("timer"));
  stopFor(300);
  await Promise.all([asked, timer]);
  expect(heard).toEqual(["timer", "operation"]);
});

test("an operation that does not end is late when so much time has gone by in turns, however long one of them was", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
  const operations = create();
  let resolve = (_value: string) => {};
  const promise = new Promise<string>((end) => {
    resolve = end;
  });
  const late: string[] = [];
  const run = operations.run("write", promise, (value) => late.push(value), 1000);
  jest.setSystemTime(Date.now() + 3_600_000);
  await jest.advanceTimersByTimeAsync(999);
  await new Promise(setImmediate);
  expect(operations.stuck()).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  expect(await run).toBeNull();
  expect([operations.stuck(), String(operations.lastError())]).toEqual([true, "Error: not done within 1000 ms"]);
  resolve("too late");
  await new Promise(setImmediate);
  expect([operations.stuck(), late]).toEqual([false, ["too late"]]);
});
