import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { tellOfLeftSpools } from "./left-spools.ts";

test("clicks are told of in directories of ours that nobody uses, and nothing else is", async () => {
  const folder = await mkdtemp(join(tmpdir(), "linkfence-left-"));
  try {
    const put = async (directory: string, files: Record<string, number>) => {
      await mkdir(join(folder, directory));
      for (const [name, size] of Object.entries(files))
        await writeFile(join(folder, directory, name), Buffer.alloc(size));
      return join(folder, directory);
    };
    const segment = "clicks-000000000001.spool";
    const used = await put("redirect", { [segment]: 700 });
    await put("redirect-2", { account: 2048, lock: 0, [segment]: 512 });
    const left = await put("redirect-3", { [segment]: 700, "clicks-000000000002.spool": 513, "notes.txt": 99 });
    await put("somebody", { [segment]: 700 });
    await put("redirect-3/worker-2", { [segment]: 612 });
    await put("redirect-3/worker-none", { [segment]: 700 });
    await writeFile(join(folder, "redirect-4"), "no directory");
    const told = await tellOfLeftSpools(folder, [used]);
    expect(told).toEqual([expect.stringContaining(`clicks (289 bytes) wait in ${left}: `)]);
    await expect(tellOfLeftSpools(join(folder, "nowhere"), [])).rejects.toThrow("ENOENT");
  } finally {
    await rm(folder, { recursive: true });
  }
});
