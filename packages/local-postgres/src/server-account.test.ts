import { describe, expect, test } from "@jest/globals";
import { accountFrom } from "./server-account.ts";

const ROOT = "root:x:0:0:root:/root:/bin/bash";
const NOBODY = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin";
const POSTGRES = "postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";

describe("the account the server runs as when started by root", () => {
  test("is PostgreSQL's own before everybody's", () => {
    expect(accountFrom([ROOT, NOBODY, POSTGRES].join("\n"))).toEqual({ name: "postgres", uid: 101, gid: 104 });
  });

  test("is nobody when there is no better one", () => {
    expect(accountFrom([ROOT, NOBODY, ""].join("\n"))).toEqual({ name: "nobody", uid: 65_534, gid: 65_534 });
  });

  test("is never root under another name", () => {
    expect(accountFrom(["postgres:x:0:0::/:/bin/sh", NOBODY].join("\n")).name).toBe("nobody");
  });

  test.each([
    ["only root", ROOT],
    ["nothing", ""],
  ])("is asked for in so many words when /etc/passwd holds %s", (_, passwd) => {
    expect(() => accountFrom(passwd)).toThrow(
      expect.objectContaining({ code: "unsupported-platform", message: expect.stringContaining("useradd") }),
    );
  });
});
