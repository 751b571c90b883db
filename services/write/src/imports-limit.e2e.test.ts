// A file that is larger than this service takes, and says so only on its way.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { openFile } from "./imports.fixture.ts";

const MAX_FILE = 4096;

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld({ IMPORT_MAX_BYTES: `${MAX_FILE}` });
});
afterAll(() => world.stop());

test("a file that is broken off at its limit is a problem like any other, and says where the import is", async () => {
  const file = openFile(world.write.url, world.adminKey);
  await file.write("target\nhttps://example.com/\n");
  let id: string | undefined;
  while (id === undefined)
    [id] = (await world.database.sql<{ id: string }[]>`SELECT id FROM import`).map((row) => row.id);
  file.end("x".repeat(MAX_FILE));
  const { status, headers, body } = await file.answer;
  expect([status, headers.location]).toEqual([413, `/v1/imports/${id}`]);
  expect(body).toMatchObject({
    code: "payload-too-large",
    instance: `urn:linkfence:request:${String(headers["x-request-id"])}`,
    detail: expect.stringContaining(id),
  });
});
