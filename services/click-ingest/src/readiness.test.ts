import { describe, expect, test } from "@jest/globals";
import { createReadiness } from "./readiness.ts";

const intake = (open: boolean) => ({ isOpen: () => open });

describe("readiness", () => {
  test.each([
    ["green when clicks are taken in and the schema is there", true, async () => true, { ready: true }],
    ["red while the service stops", false, async () => true, { ready: false, reason: "stopping" }],
    [
      "red without the schema",
      true,
      async () => false,
      { ready: false, reason: expect.stringContaining("migrations") },
    ],
    [
      "red when the database does not answer, without its words",
      true,
      () => Promise.reject(new Error("hush-hush")),
      { ready: false, reason: "the statistics database does not answer" },
    ],
  ])("is %s", async (_case, open, hasSchema, expected) => {
    expect(await createReadiness(intake(open), { hasSchema })()).toEqual(expected);
  });
});
