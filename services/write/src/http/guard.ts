// Who may come in. Keys are looked up at every call; the limits stand around that:
// - whoever shows no valid key has a hit on the limit of its address, and beyond it is refused before the database is asked;
// - except for a key that was valid when it was last seen, so that neighbours behind one address (NAT) whose keys are valid
//   go on. Of those that this process has not seen so far, a few each second are looked up from such addresses: a valid one
//   gets in at last, whatever its neighbours do, and the database does not notice the others;
// - whoever shows a valid one has a hit on the limit of the key, whatever the key allows.
import { Problem, type Scope } from "@linkfence/contracts";
import type { Request, Response } from "express";
import type { Author } from "../store/link-rows.ts";
import type { Authenticator } from "./auth.ts";
import { onlyOne } from "./header-field.ts";
import { networkOf, type RateLimits } from "./rate-limits.ts";

export type Guard = ReturnType<typeof createGuard>;

type Key = { id: string; secret: string };

const authors = new WeakMap<Request, Author>();

/** Whose key a request has, once it was found valid, though it may not allow the call. */
export function authorOf(request: Request): Author | undefined {
  return authors.get(request);
}

/** Creates the check that every call with a key goes through. Rejects with a Problem (401, 403, 429). */
export function createGuard(authenticate: Authenticator, limits: RateLimits) {
  const { known } = limits;

  return async function admit(request: Request, response: Response, scope: Scope) {
    const hitAddress = () => limits.address.hit(request, response, networkOf(request));
    let key: Key | undefined;
    try {
      return await authenticate(onlyOne(request, "Authorization"), scope, {
        async beforeLookup(parsed) {
          key = parsed;
          const isHeldUp = limits.address.isSpent(networkOf(request)) && !known.has(key) && !limits.mayTry();
          if (isHeldUp) await hitAddress();
        },
        async onFound({ id, owner, secretHash }) {
          known.note(id, secretHash);
          authors.set(request, { owner, keyId: id });
          await limits.key.hit(request, response, id);
        },
      });
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "unauthorized") throw error;
      // It was valid, and is no longer. Who has a wrong secret for this id does not make the right one unknown.
      if (key && known.has(key)) known.forget(key.id);
      await hitAddress();
      throw error;
    }
  };
}
