import { type FieldFault, Problem, type UpdateLinkRequest } from "@linkfence/contracts";

/** What changes of a link; what is absent stays. */
export type MetadataChange = { title?: string | null; tags?: readonly string[]; note?: string | null };

/** Fields of a creation that no later call changes, so that whoever passed a short URL on knows what it means. */
const IMMUTABLE = ["target", "expiresAt", "expiresInSeconds", "alias", "code"];

/**
 * Refuses a body that would change where a link leads, when it ends or what it is called.
 * @throws Problem 422 that names each such field
 */
export function refuseImmutable(body: object): void {
  const faults = IMMUTABLE.filter((field) => Object.hasOwn(body, field)).map((field): FieldFault => {
    return { field, rule: "immutable", detail: "never changes: revoke this link and create another" };
  });
  const detail = faults.map((fault) => `${fault.field} ${fault.detail}`).join("; ");
  if (faults.length > 0) throw new Problem("immutable-field", detail, faults);
}

/**
 * Decides what a change of the right shape does: `null` clears.
 * @throws Problem 400 for a text that cannot be stored
 */
export function draftChange({ title, tags, note }: UpdateLinkRequest): MetadataChange {
  const fault = findTextFault({ title, tags, note });
  if (fault) throw new Problem("invalid-request", `${fault.field} ${fault.detail}`, [fault]);
  return {
    ...(title === undefined ? {} : { title }),
    ...(tags === undefined ? {} : { tags: tags ?? [] }),
    ...(note === undefined ? {} : { note }),
  };
}

type Texts = { [K in keyof UpdateLinkRequest]: UpdateLinkRequest[K] | undefined };

/** Finds the first text that cannot be stored. */
export function findTextFault({ title, tags, note }: Texts): FieldFault | undefined {
  const texts = [["title", title], ...(tags ?? []).map((tag, i) => [`tags[${i}]`, tag]), ["note", note]] as const;
  const field = texts.find(([, text]) => typeof text === "string" && !isStorable(text))?.[0];
  return typeof field === "string" ? { field, ...UNSTORABLE } : undefined;
}

export const UNSTORABLE = { rule: "text", detail: "must be well-formed Unicode without NUL characters" };

/** PostgreSQL stores no NUL, and a lone surrogate has no UTF-8 form: the driver would replace it silently. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && !/\p{Surrogate}/u.test(text);
}
