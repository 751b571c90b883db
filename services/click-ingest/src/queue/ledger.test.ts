import { describe, expect, test } from "@jest/globals";
import { createLedger } from "./ledger.ts";

describe("the ledger", () => {
  test("shows each click where it has gone, and the parts add up at every step", () => {
    const ledger = createLedger();
    const missing = () => {
      const { received, inserted, duplicate, inFlight, deadLettered, refused, givenBack } = ledger.read();
      const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, one) => all + one, 0);
      return received - inserted - duplicate - inFlight - sum(deadLettered) - sum(refused) - sum(givenBack);
    };
    ledger.receive(10);
    ledger.receive(5);
    expect([ledger.read().inFlight, missing()]).toEqual([15, 0]);
    ledger.answer({ inserted: 4, duplicate: 1, deadLettered: { id: 2, unstorable: 1 }, refused: { late: 2 } });
    expect([ledger.read().inFlight, missing()]).toEqual([5, 0]);
    ledger.giveBack(5, "deadline");
    expect([ledger.read().inFlight, missing()]).toEqual([0, 0]);
    expect(ledger.read()).toMatchObject({
      received: 15,
      inserted: 4,
      duplicate: 1,
      deadLettered: { id: 2, unstorable: 1, shape: 0 },
      refused: { late: 2, "dead-letters-full": 0 },
      givenBack: { deadline: 5, full: 0 },
    });
  });
});
