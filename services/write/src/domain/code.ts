import { isCode } from "@linkfence/contracts";
import { drawText, type RandomBytes } from "./draw.ts";
import { isReserved } from "./reserved-words.ts";

/** 57 characters that cannot be taken for one another: letters and digits without 0 and O, 1, l and I. */
export const CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";

/** 57^8 is about 1.1e14: a guess at one of a hundred million links succeeds once in a million. */
export const DEFAULT_CODE_LENGTH = 8;

/** A reserved word among codes of 8 characters turns up once in 1e13; several in a row mean a broken source. */
const MAX_REDRAWS = 5;

/** Makes a new code of the given length; handed to the store, which finds out whether it is free. */
export type NewCode = (length: number) => string;

/**
 * Draws a code: unbiased, and never a reserved word.
 * @param length 8 to 32
 * @param randomBytes cryptographic source
 * @throws RangeError when the source is broken
 */
export function generateCode(length: number, randomBytes: RandomBytes): string {
  for (let draw = 0; draw <= MAX_REDRAWS; draw++) {
    const code = drawText(CODE_ALPHABET, length, randomBytes);
    if (!isReserved(code)) return code;
  }
  throw new RangeError("the source of randomness kept drawing reserved words");
}

export type AliasRule = "length" | "characters" | "reserved";
export type AliasDecision = { ok: true; code: string } | { ok: false; rule: AliasRule; detail: string };

/**
 * Decides whether a text chosen by a caller may become a code. It is taken as it stands or refused, never repaired:
 * unreserved characters of RFC 3986 section 2.3 alone are the same raw and percent-encoded.
 */
export function checkAlias(text: string): AliasDecision {
  if (isReserved(text)) return refuse("reserved", "is a reserved word: choose another");
  if (isCode(text)) return { ok: true, code: text };
  if (/^[A-Za-z0-9_-]*$/.test(text)) return refuse("length", "must have 3 to 32 characters");
  return refuse("characters", "may consist of the letters A-Z and a-z, digits, - and _ only");
}

function refuse(rule: AliasRule, detail: string): AliasDecision {
  return { ok: false, rule, detail };
}
