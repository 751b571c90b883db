// Why a link was not created, where only the database could tell.
import { Problem } from "@linkfence/contracts";
import type { LinkDraft } from "../domain/link.ts";

/**
 * Tries for a random code. With a hundred million links and codes of 8 characters a collision happens once in a million
 * tries; five in a row mean that the codes of that length are used up.
 */
export const CODE_TRIES = 5;

export function aliasTaken(alias: string): Problem {
  return new Problem("alias-taken", `the alias ${alias} is taken, or was once: choose another`);
}

export function codeSpaceExhausted({ codeLength }: LinkDraft): Problem {
  const longer = Math.min(32, codeLength + 2);
  return new Problem(
    "code-space-exhausted",
    `no free code of ${codeLength} characters was found in ${CODE_TRIES} tries: ask for a codeLength of ${longer}`,
  );
}
