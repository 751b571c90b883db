import {
  CreateBatchRequest,
  CreateLinkRequest,
  isCode,
  type Link,
  Problem,
  RevokeBatchRequest,
} from "@linkfence/contracts";
import { createValidator, type ProblemBody, problemBody } from "@linkfence/service-shell";
import { draftLink, type LinkDraft } from "../domain/link.ts";
import type { Author } from "../store/link-rows.ts";
import type { BatchOutcome, RevokedCode } from "../store/links.ts";
import type { BodyBudget } from "./body-budget.ts";
import { readJsonObject } from "./json-body.ts";
import { type LinkRouteDeps, linkNotFound } from "./links-routes.ts";
import { presentRevocation } from "./presentation.ts";
import { readQuery } from "./query.ts";
import { NOT_CONFIRMED, readWait } from "./revocation.ts";
import type { Routes } from "./routes.ts";

/** A thousand targets of full size have 8 MB. */
export const CREATE_BATCH_BODY_LIMIT = 10 * 1024 * 1024;
/** A thousand texts of the greatest length that the schema lets pass have 1 MB. */
export const REVOKE_BATCH_BODY_LIMIT = 1024 * 1024;

export type BatchRouteDeps = Omit<LinkRouteDeps, "statistics" | "listing"> & { budget: BodyBudget };

type CreateItem = { status: number; link: Link } | { status: number; problem: ProblemBody };

/** The calls that deal with up to a thousand links; each item is judged on its own and answered in its place. */
export function batchRoutes({ links, presentLink, rules, now, budget }: BatchRouteDeps): Routes {
  const validateBatch = createValidator(CreateBatchRequest);
  const validateItem = createValidator(CreateLinkRequest);
  const validateRevocation = createValidator(RevokeBatchRequest);

  /** Judges one item; what is refused becomes its result. */
  function draftItem(item: unknown, path: string): LinkDraft | Problem {
    try {
      return draftLink(validateItem(item, path), { ...rules, now: now(), path });
    } catch (error) {
      if (error instanceof Problem) return error;
      throw error;
    }
  }

  async function createAll(items: readonly unknown[], author: Author): Promise<CreateItem[]> {
    const judged = items.map((item, i) => draftItem(item, `links[${i}]`));
    const drafts = judged.filter((draft): draft is LinkDraft => !(draft instanceof Problem));
    const outcomes = drafts.length > 0 ? (await links.createBatch(drafts, author)).values() : [].values();
    return judged.map((draft) => presentItem(draft instanceof Problem ? draft : outcomes.next().value));
  }

  function presentItem(outcome: BatchOutcome | undefined): CreateItem {
    if (outcome === undefined) throw new Error("the store returned fewer results than drafts");
    if (!(outcome instanceof Problem)) return { status: 201, link: presentLink(outcome) };
    const problem = problemBody(outcome);
    return { status: problem.status, problem };
  }

  async function revokeAll(codes: readonly string[], author: Author) {
    const known = codes.filter(isCode);
    const results = (known.length > 0 ? await links.revoke(known, author) : []).values();
    return codes.map((code) => presentRevoked(isCode(code) ? results.next().value : undefined));
  }

  return {
    "/v1/links\\:batch": {
      post: {
        scope: "links:create",
        async handle(request, author) {
          readQuery(request, []);
          return budget.within(request, CREATE_BATCH_BODY_LIMIT, async () => {
            const body = validateBatch(await readJsonObject(request, CREATE_BATCH_BODY_LIMIT));
            return { status: 200, body: { results: await createAll(body.links, author) } };
          });
        },
      },
    },
    "/v1/links\\:revoke": {
      post: {
        scope: "links:revoke",
        async handle(request, author) {
          readWait(request);
          return budget.within(request, REVOKE_BATCH_BODY_LIMIT, async () => {
            const body = validateRevocation(await readJsonObject(request, REVOKE_BATCH_BODY_LIMIT));
            return { status: 200, body: { results: await revokeAll(body.codes, author), effective: NOT_CONFIRMED } };
          });
        },
      },
    },
  };
}

function presentRevoked(revoked: RevokedCode | undefined) {
  if (!revoked || revoked.outcome === "not-found") return { status: 404, problem: problemBody(linkNotFound()) };
  return { status: 200, ...presentRevocation(revoked) };
}
