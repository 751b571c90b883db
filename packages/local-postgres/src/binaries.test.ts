import { describe, expect, test } from "@jest/globals";
import { findBinaryPackage } from "./binaries.ts";

describe("the PostgreSQL programs", () => {
  test("are found for this machine", async () => {
    const { nativeDir, id } = await findBinaryPackage();

    expect(nativeDir).toMatch(/native$/);
    expect(id).toMatch(new RegExp(`^postgresql-16\\.\\S+-${process.platform}-${process.arch}$`));
  });

  test.each([
    ["win32", "x64"],
    ["sunos", "x64"],
    ["linux", "mips"],
  ])("are refused on %s-%s with the way out", async (platform, arch) => {
    await expect(findBinaryPackage(platform, arch)).rejects.toMatchObject({
      code: "unsupported-platform",
      message: expect.stringContaining("set DATABASE_URL and STATS_DATABASE_URL"),
    });
  });
});
