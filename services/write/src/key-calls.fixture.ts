// The calls of the admin API that make and revoke keys, for tests of what comes of them.
import { expect } from "@jest/globals";
import type { MintedKey } from "@linkfence/contracts";
import type { ApiWorld, Body } from "./api-world.fixture.ts";

export type KeyAnswer = MintedKey & { code?: string; detail?: string; errors?: { field: string; rule: string }[] };

export type KeyCalls = ReturnType<typeof createKeyCalls>;

/** Makes them. `key` is the caller's; the admin's unless it says otherwise. */
export function createKeyCalls(world: ApiWorld) {
  const make = (body: Body, key?: string) => world.api<KeyAnswer>("POST", "/v1/keys", body, key);
  return {
    make,
    /** A key of a new owner. */
    async mint(owner: string, scopes: string[], over: Body = {}): Promise<MintedKey> {
      const { status, json } = await make({ name: "test", owner, scopes, ...over });
      expect(status).toBe(201);
      return json;
    },
    async revoke(id: string, key = world.adminKey) {
      const headers = { Authorization: `Bearer ${key}` };
      const answer = await world.raw(`/v1/keys/${id}`, { method: "DELETE", headers });
      return { status: answer.status, code: answer.body === "" ? null : String(JSON.parse(answer.body).code) };
    },
  };
}
