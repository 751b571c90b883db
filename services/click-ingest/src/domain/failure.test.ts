import { describe, expect, test } from "@jest/globals";
import { classifyError } from "@linkfence/db";
import { judgeFailure } from "./failure.ts";

const TRANSIENT = {
  "connection failure": "08006",
  "connection refused by the server": "08004",
  "connection that does not exist": "08003",
  "protocol violation, as more parameters than the protocol can count": "08P01",
  "too many parameters for the driver": "MAX_PARAMETERS_EXCEEDED",
  "serialization failure": "40001",
  deadlock: "40P01",
  "lock timeout": "55P03",
  "disk full": "53100",
  "out of memory": "53200",
  "too many connections": "53300",
  "a limit of the configuration": "53400",
  "query cancelled": "57014",
  "terminated by an administrator": "57P01",
  "crash of another backend": "57P02",
  "server is starting": "57P03",
  "database dropped": "57P04",
  "idle session ended": "57P05",
  "a day without a partition": "CK001",
  "read-only standby": "25006",
  "transaction timeout": "25P04",
  "table missing, as before a migration": "42P01",
  "function missing": "42883",
  "privilege missing": "42501",
  "prepared statement lost to a pooler": "26000",
  "password wrong": "28P01",
  "database missing": "3D000",
  "index corrupted": "XX002",
  "internal error": "XX000",
  refused: "ECONNREFUSED",
  reset: "ECONNRESET",
  "broken pipe, which looks like an SQLSTATE": "EPIPE",
  "not permitted, which looks like one too": "EPERM",
  "connection closed by the driver": "CONNECTION_CLOSED",
  "certificate expired": "CERT_HAS_EXPIRED",
  "deadline, which has no code": "",
};

const POISON = {
  "NUL in a text": "22021",
  "invalid UUID": "22P02",
  "year 300000": "22008",
  "number out of range": "22003",
  "check violated": "23514",
  "not-null violated": "23502",
  "unique key other than the id": "23505",
  "check option violated": "44000",
  "row too wide for its index": "54000",
  "a trigger's own exception": "P0001",
  "more than one row": "21000",
};

describe("a failed INSERT", () => {
  test.each(Object.entries(TRANSIENT))("keeps the clicks: %s", (_case, code) => {
    expect(judgeFailure(code)).toBe("transient");
  });

  test.each(Object.entries(POISON))("is the data's fault: %s", (_case, code) => {
    expect(judgeFailure(code)).toBe("poison");
  });

  test("is never the data's fault where the database package says it may be repeated or the server is away", () => {
    const passing = [...Object.values(TRANSIENT), ...Object.values(POISON)].filter((code) =>
      ["retryable", "unavailable"].includes(classifyError({ code })),
    );
    expect(passing.length).toBeGreaterThan(10);
    expect(passing.filter((code) => judgeFailure(code) === "poison")).toEqual([]);
  });
});
