// What an import comes to does not depend on where its upload was broken off.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type ImportWorld, startImportWorld } from "./import-world.fixture.ts";
import { UploadBroken } from "./upload.ts";

const HEADER = "target,alias,title\n";

let world: ImportWorld;
beforeAll(async () => {
  world = await startImportWorld();
});
afterEach(() => world.forgetAll());
afterAll(() => world.stop());

/** Lines of every kind; of two equal aliases the second is taken, or was created already. */
const line = fc.oneof(
  fc.webUrl().map((url) => `${url},,\n`),
  fc.nat(4).map((n) => `https://a.example/${n},alias-${n},\r\n`),
  fc.tuple(fc.nat(4), fc.nat(4)).map(([n, m]) => `https://b.example/${n},alias-${m},twice\n`),
  fc.string().map((text) => `https://c.example/,,"${text.replaceAll('"', '""')}\nand more"\n`),
  fc.constantFrom("nonsense,,\n", "\n", "one field\n", '"open,,\n', 'https://d.example/,,5" pipe\n', "\0,,\n"),
);
const file = fc.array(line, { maxLength: 40 }).map((lines) => Buffer.from(HEADER + lines.join("")));

/** Sends a file as often as it is broken off, at the bytes that are given, and then once to its end. */
async function sendInParts(bytes: Buffer, cuts: readonly number[]): Promise<void> {
  const importer = world.createWith();
  for (const cut of cuts) {
    const sent = world.upload(importer, [bytes.subarray(0, cut)]);
    await expect(sent).rejects.toBeInstanceOf(UploadBroken);
  }
  await world.upload(importer, [bytes, null]);
}

test("a file that is cut at any bytes and continued comes to the same as in one piece", async () => {
  await fc.assert(
    fc.asyncProperty(file, fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), async (bytes, places) => {
      await world.forgetAll();
      await sendInParts(bytes, []);
      const whole = await world.outcome();
      await world.forgetAll();
      await sendInParts(
        bytes,
        places.map((place) => place % (bytes.length + 1)),
      );
      expect(await world.outcome()).toEqual(whole);
    }),
    { numRuns: 15 },
  );
});

describe("the place up to where a file is imported", () => {
  const bytes = Buffer.from(`${HEADER}https://a.example/,,\nhttps://b.example/,,\nhttps://c.example/,,\n`);
  const half = bytes.length - 10;
  /** As it would be, were the place written otherwise than with the links: they are there, and it is not. */
  const loseThePlace = () =>
    world.database.sql`UPDATE import SET bytes = 0, digest = sha256(''), last_line = 0`.then(() => undefined);

  test("keeps each line from being created twice", async () => {
    await sendInParts(bytes, [half]);
    expect((await world.outcome()).links).toHaveLength(3);
  });

  test("control: without it every line before is there twice, unless its number forbids that", async () => {
    const importer = world.createWith();
    await expect(world.upload(importer, [bytes.subarray(0, half)])).rejects.toBeInstanceOf(UploadBroken);
    await loseThePlace();
    await expect(world.upload(importer, [bytes, null])).rejects.toMatchObject({ code: "23505" });
    expect((await world.outcome()).links).toHaveLength(2);

    await world.database.sql`DROP INDEX link_import`;
    try {
      await world.upload(importer, [bytes, null]);
      const { links } = await world.outcome();
      expect(links.map((link) => link.target)).toEqual(
        ["a", "a", "b", "b", "c"].map((host) => `https://${host}.example/`),
      );
    } finally {
      await world.forgetAll();
      await world.database.sql`
        CREATE UNIQUE INDEX link_import ON link (import_id, import_line) WHERE import_id IS NOT NULL`;
    }
  });

  test("is found again where the answer to a commit was lost", async () => {
    let lost = 0;
    const { commit } = world.parts.batches;
    const importer = world.createWith({
      batches: {
        ...world.parts.batches,
        async commit(batch) {
          const row = await commit(batch);
          lost += 1;
          if (lost % 2 === 1) throw Object.assign(new Error("the connection was lost"), { code: "CONNECTION_CLOSED" });
          return row;
        },
      },
    });
    await expect(world.upload(importer, [bytes.subarray(0, half)])).rejects.toBeInstanceOf(UploadBroken);
    const { row } = await world.upload(importer, [bytes, null]);
    expect(row).toMatchObject({ lines: 3, created: 3 });
    expect((await world.outcome()).links).toHaveLength(3);
    expect(lost).toBe(4);
  });

  test("is not written by who lost the import to another upload, though both believe to have its lock", async () => {
    const importer = world.createWith({
      locks: { acquire: async () => ({ lost: () => false, release: async () => {} }) },
    });
    let overtake = () => {};
    const overtaken = new Promise<void>((resolve) => {
      overtake = resolve;
    });
    const pieces = [bytes.subarray(0, half), bytes.subarray(half), null];
    const next = async () => {
      if (pieces.length === 2) await overtaken;
      return pieces.shift() ?? null;
    };
    let first: Promise<unknown> = Promise.resolve();
    await new Promise<void>((begun) => {
      first = importer.run({ order: world.orderOf({}), upload: { next }, begun: () => begun() });
    });
    await world.upload(importer, [bytes, null]);
    overtake();
    await expect(first).rejects.toMatchObject({ code: "import-in-use" });
    expect(await world.outcome()).toMatchObject({ imports: [{ lines: 3, created: 3 }], links: [{}, {}, {}] });
  });
});

describe("what is kept of an import is bounded", () => {
  test("ten thousand reasons, and the number of the others", async () => {
    const lines = Array.from({ length: 10_020 }, (_, n) => `nonsense ${n},,\n`);
    const bytes = Buffer.from(`${HEADER}${"x".repeat(40_000)},,\n${lines.join("")}`);
    const before = structuredClone(world.counts);
    const { row } = await world.upload(world.createWith(), [bytes, null]);
    expect(row).toMatchObject({ lines: 10_021, refused: 10_021, errorsKept: 10_000 });
    expect(await world.database.sql`SELECT count(*)::int AS n, max(line)::int AS last FROM import_error`).toEqual([
      { n: 10_000, last: 10_001 },
    ]);
    expect(world.counts.errorsDropped - before.errorsDropped).toBe(21);
    expect(world.counts.refusals["long-line"] - before.refusals["long-line"]).toBe(1);
  });

  test("a hundred names of what is not carried over", async () => {
    const lines = Array.from({ length: 150 }, (_, n) => JSON.stringify({ url: "https://a.example/", [`x${n}\0`]: n }));
    const { row } = await world.upload(world.createWith(), [Buffer.from(lines.join("\n")), null], {
      ...{ mapping: "yourls", format: "jsonl" },
    });
    expect(row).toMatchObject({ created: 150 });
    expect(row.ignoredColumns).toEqual(Array.from({ length: 100 }, (_, n) => `x${n}\uFFFD`));
  });
});
