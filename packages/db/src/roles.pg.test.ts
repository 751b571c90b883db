import { expect, test } from "@jest/globals";
import { createTestDatabase, runRights } from "@linkfence/testkit";

test("databases of one server can be set up at the same time, though their roles are the server's", async () => {
  const databases = await Promise.all(Array.from({ length: 4 }, () => createTestDatabase("empty")));
  const setUp = databases.map(async ({ sql }) => {
    for (let times = 0; times < 5; times += 1) await runRights(sql, "roles");
  });
  expect((await Promise.allSettled(setUp)).map(({ status }) => status)).toEqual(Array(4).fill("fulfilled"));
  await Promise.all(databases.map((database) => database.drop()));
});
