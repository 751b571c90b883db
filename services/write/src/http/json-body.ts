import { Problem } from "@linkfence/contracts";
import { isJsonInUtf8, isJsonPatchInUtf8 } from "@linkfence/service-shell";
import type { Request } from "express";
import getRawBody from "raw-body";
import { onlyOne } from "./header-field.ts";

/** Media types of a body that is JSON and nothing else. */
export const JSON_TYPE = ["application/json"] as const;
/** What reading a body may end in, beside `invalid-request`. */
export const BODY_PROBLEMS = ["payload-too-large", "unsupported-media-type"] as const;

/**
 * Reads the JSON object that a request carries.
 * @param limit bytes at the most
 * @throws Problem 415 for anything but uncompressed UTF-8 `application/json`, 413 above the limit, 400 for a body that
 * is missing, malformed or no object
 */
export async function readJsonObject(request: Request, limit: number): Promise<object> {
  return (await readJsonBody(request, limit)).value;
}

/** The same for a call that may come without a body, which is as good as one without fields. */
export async function readOptionalJsonObject(request: Request, limit: number): Promise<object> {
  const isAbsent = Number(request.get("content-length") ?? 0) === 0 && request.get("transfer-encoding") === undefined;
  return isAbsent ? {} : readJsonObject(request, limit);
}

/** The same, with the bytes as they came. */
export async function readJsonBody(request: Request, limit: number): Promise<{ value: object; bytes: Uint8Array }> {
  if (!isJsonInUtf8(onlyOne(request, "Content-Type")))
    throw unsupported("Content-Type", "mediaType", "send the body as application/json in UTF-8");
  return readBody(request, limit);
}

/** The same for a change, which may also come as `application/merge-patch+json`. */
export async function readJsonPatch(request: Request, limit: number): Promise<object> {
  if (!isJsonPatchInUtf8(onlyOne(request, "Content-Type")))
    throw unsupported("Content-Type", "mediaType", "send the body as application/merge-patch+json in UTF-8");
  return (await readBody(request, limit)).value;
}

async function readBody(request: Request, limit: number): Promise<{ value: object; bytes: Uint8Array }> {
  if ((request.get("content-encoding") ?? "identity").toLowerCase() !== "identity")
    throw unsupported("Content-Encoding", "identity", "send the body without compression");
  const bytes = await readBytes(request, limit);
  return { value: parseObject(decodeUtf8(bytes)), bytes };
}

async function readBytes(request: Request, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit, length: request.get("content-length") ?? null });
  } catch (error) {
    // What is still on its way is read and thrown away, so that the client gets to see the answer.
    request.resume();
    if (isTooLarge(error)) throw tooLarge(limit);
    throw invalidBody("complete", "ended early");
  }
}

function isTooLarge(error: unknown): boolean {
  return typeof error === "object" && error !== null && "type" in error && error.type === "entity.too.large";
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidBody("utf-8", "must be valid UTF-8");
  }
}

function parseObject(text: string): object {
  if (text.trim() === "") throw invalidBody("required", "is missing: send a JSON object");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidBody("json", "must be valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidBody("type", "must be a JSON object");
  return value;
}

/** The body as a whole is named as the validator names it. */
function invalidBody(rule: string, detail: string): Problem {
  return new Problem("invalid-request", `the body ${detail}`, [{ field: "body", rule, detail }]);
}

function tooLarge(limit: number): Problem {
  const detail = `the body of this call may have ${limit} bytes at the most`;
  return new Problem("payload-too-large", detail, [{ field: "body", rule: "maxBytes", detail }]);
}

function unsupported(field: string, rule: string, detail: string): Problem {
  return new Problem("unsupported-media-type", detail, [{ field, rule, detail }]);
}
