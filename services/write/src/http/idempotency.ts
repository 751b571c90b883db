// How a key comes in and how a kept answer goes out; store/idempotency.ts says what is kept.
import { createHash } from "node:crypto";
import { Problem } from "@linkfence/contracts";
import type { Request } from "express";
import { Type } from "typebox";
import { decideIdempotencyKey, IDEMPOTENCY_KEY_MAX } from "../domain/idempotency-key.ts";
import type { Answer, KeyedCall, KeyedRequest } from "../store/idempotency.ts";
import type { Reply, RequestField } from "./call.ts";

const FIELD = "Idempotency-Key";

/** The field as calls that take it describe it. */
export const IDEMPOTENCY_FIELDS: Readonly<Record<string, RequestField>> = {
  [FIELD]: {
    description:
      "Makes the call repeatable: the same key with the same body is answered as the first time. Kept for 24 hours.",
    schema: Type.String({ minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX }),
  },
};
/** What such a call may say beside its own answer. */
export const IDEMPOTENCY_PROBLEMS = ["idempotency-key-in-use", "idempotency-key-reused"] as const;
export const REPLAYED_FIELD = { "Idempotency-Replayed": "`true` where the answer is that of an earlier call" };

/** Reads the key of a request; null where it has none. Throws a Problem (400) that names the broken rule. */
export function readIdempotencyKey(request: Request): string | null {
  const decision = decideIdempotencyKey(request.headersDistinct[FIELD.toLowerCase()] ?? []);
  if (decision.ok) return decision.key;
  const { rule, detail } = decision;
  throw new Problem("invalid-request", `the header field ${FIELD} ${detail}`, [{ field: FIELD, rule, detail }]);
}

/**
 * Describes a request for comparison with later ones. Its bytes count as they came: a client that repeats a request sends
 * the same ones, and another order of members or other blanks are another request.
 */
export function describeRequest(call: KeyedCall, owner: string, key: string, bytes: Uint8Array): KeyedRequest {
  return { call, owner, key, digest: createHash("sha256").update(bytes).digest() };
}

/** What goes out is the text that is kept, and not a rendering of it. */
export function replyWith({ status, location, body, replayed }: Answer): Reply {
  const headers: Record<string, string> = {};
  if (location !== null) headers.Location = location;
  if (replayed) headers["Idempotency-Replayed"] = "true";
  return { status, text: body, headers };
}

/**
 * Decides on a request with a key that is refused as it stands. It may have been accepted when it came first: an expiry
 * that lay ahead then may lie behind now. Then that answer stands.
 * @param find looks what is kept under the key
 */
export async function replayOrRefuse(refusal: unknown, find: () => Promise<Answer | undefined>): Promise<Reply> {
  const kept = refusal instanceof Problem ? await find() : undefined;
  if (kept === undefined) throw refusal;
  return replyWith(kept);
}
