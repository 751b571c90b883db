import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { formatKey, KEY_ID_ALPHABET, KEY_ID_LENGTH } from "../domain/api-key.ts";
import { drawText } from "../domain/draw.ts";

/**
 * The stored form of a secret. One round of SHA-256 is enough: the secret has 256 random bits, so there is nothing
 * that a slow hash would protect from guessing.
 */
export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

/** No secret has this digest but by a chance of 2^-256: what an unknown key is compared with. */
const NO_SECRET = Buffer.alloc(32);

/** Compares a secret with a stored digest, in a time that does not depend on either; undefined matches nothing. */
export function matchesSecret(secret: string, stored: Uint8Array | undefined): boolean {
  return timingSafeEqual(hashSecret(secret), stored ?? NO_SECRET) && stored !== undefined;
}

/** Makes a key: its id, the text its owner gets to see once, and the digest that is stored. */
export function mintKey(): { id: string; text: string; secretHash: Buffer } {
  const id = drawText(KEY_ID_ALPHABET, KEY_ID_LENGTH, randomBytes);
  const secret = randomBytes(32).toString("base64url");
  return { id, text: formatKey(id, secret), secretHash: hashSecret(secret) };
}
