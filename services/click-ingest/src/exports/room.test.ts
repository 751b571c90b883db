// How much a file may have while others grow beside it.
import { expect, test } from "@jest/globals";
import { createRoom } from "./room.ts";

function openRoom(answers: (() => Promise<number>)[]) {
  let at = 0;
  let asked = 0;
  const ask = () => answers[asked++]?.() ?? Promise.reject(new Error("asked too often"));
  const room = createRoom(100, ask, () => at);
  return {
    room,
    asked: () => asked,
    later: (ms: number) => {
      at += ms;
    },
  };
}
/** Promises that have an answer have told it. */
const told = () => new Promise((resolve) => setImmediate(resolve));

test("the room of a file shrinks with what others have written meanwhile, and grows when they are gone", async () => {
  const { room, later } = openRoom([async () => 40, async () => 90]);
  expect(room()).toBe(100);
  for (const expected of [40, 90]) {
    later(1001);
    room();
    await told();
    expect(room()).toBe(expected);
  }
});

test("it is asked for once a second at the most, however often it is looked at", async () => {
  const { room, later, asked } = openRoom([async () => 40, async () => 30]);
  for (let look = 0; look < 2000; look += 1) {
    room();
    later(1);
  }
  await told();
  expect(asked()).toBe(1);
});

test("it stays as it was where nobody answers", async () => {
  const { room, later } = openRoom([() => Promise.reject(new Error("gone"))]);
  later(1001);
  room();
  await told();
  expect(room()).toBe(100);
});
