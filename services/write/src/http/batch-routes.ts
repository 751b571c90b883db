import {
  CreateBatchDocument,
  CreateBatchRequest,
  CreateBatchResult,
  CreateLinkRequest,
  isCode,
  Problem,
  RevokeBatchRequest,
  RevokeBatchResult,
  RevokeQuery,
} from "@linkfence/contracts";
import { createValidator, problemBody } from "@linkfence/service-shell";
import { draftLink, type LinkDraft } from "../domain/link.ts";
import type { BatchOutcome } from "../store/batch-insert.ts";
import type { KeyedRequest } from "../store/idempotency.ts";
import type { Author } from "../store/link-rows.ts";
import type { RevokedCode } from "../store/links.ts";
import type { BodyBudget } from "./body-budget.ts";
import { call, type Reply, type Routes } from "./call.ts";
import {
  describeRequest,
  IDEMPOTENCY_FIELDS,
  IDEMPOTENCY_PROBLEMS,
  REPLAYED_FIELD,
  readIdempotencyKey,
  replayOrRefuse,
  replyWith,
} from "./idempotency.ts";
import { BODY_PROBLEMS, JSON_TYPE, readJsonBody, readJsonObject } from "./json-body.ts";
import { type LinkRouteDeps, linkNotFound, REVOKE_DESCRIPTION } from "./links-routes.ts";
import { presentRevocation } from "./presentation.ts";
import { waitUntilEffective } from "./revocation.ts";

/** A thousand targets of full size have 8 MB. */
export const CREATE_BATCH_BODY_LIMIT = 10 * 1024 * 1024;
/** A thousand texts of the greatest length that the schema lets pass have 1 MB. */
export const REVOKE_BATCH_BODY_LIMIT = 1024 * 1024;

export type BatchRouteDeps = Omit<LinkRouteDeps, "statistics" | "listing"> & { budget: BodyBudget };

type CreateItem = CreateBatchResult["results"][number];

/** The calls that deal with up to a thousand links; each item is judged on its own and answered in its place. */
export function batchRoutes(deps: BatchRouteDeps): Routes {
  const { links, keyedLinks, presentLink, rules, now, budget } = deps;
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

  function judge(items: readonly unknown[]) {
    const judged = items.map((item, i) => draftItem(item, `links[${i}]`));
    return { judged, drafts: judged.filter((draft): draft is LinkDraft => !(draft instanceof Problem)) };
  }

  /** The answer, out of what was judged and one outcome for each draft among it. */
  function present(judged: readonly (LinkDraft | Problem)[], outcomes: readonly BatchOutcome[]) {
    const each = outcomes.values();
    return { results: judged.map((draft) => presentItem(draft instanceof Problem ? draft : each.next().value)) };
  }

  async function createAll(value: object, author: Author): Promise<Reply> {
    const { judged, drafts } = judge(validateBatch(value).links);
    const outcomes = drafts.length > 0 ? await links.createBatch(drafts, author) : [];
    return { status: 200, body: present(judged, outcomes), count: countLinks(outcomes) };
  }

  async function createAllOnce(value: object, author: Author, request: KeyedRequest): Promise<Reply> {
    let items: readonly unknown[];
    try {
      items = validateBatch(value).links;
    } catch (error) {
      return replayOrRefuse(error, () => keyedLinks.find(request));
    }
    const { judged, drafts } = judge(items);
    let count = 0;
    const render = (outcomes: readonly BatchOutcome[]) => {
      count = countLinks(outcomes);
      return JSON.stringify(present(judged, outcomes));
    };
    const reply = replyWith(await keyedLinks.createBatch(drafts, { author, request }, render));
    return { ...reply, count };
  }

  function presentItem(outcome: BatchOutcome | undefined): CreateItem {
    if (outcome === undefined) throw new Error("the store returned fewer results than drafts");
    if (!(outcome instanceof Problem)) return { status: 201, link: presentLink(outcome) };
    const problem = problemBody(outcome);
    return { status: problem.status, problem };
  }

  async function revokeAll(codes: readonly string[], author: Author) {
    const known = codes.filter(isCode);
    const revoked = known.length > 0 ? await links.revoke(known, author) : [];
    const each = revoked.values();
    const results = codes.map((code, i) => (isCode(code) ? presentRevoked(each.next().value) : presentNoCode(i)));
    return { revoked, results };
  }

  const createLinks = call({
    scope: "links:create",
    describe: {
      operationId: "createLinks",
      summary: "Create up to 1,000 links",
      description: "Each item is judged on its own, and its result stands in its place.",
      group: "Links",
      fields: IDEMPOTENCY_FIELDS,
      body: { schema: CreateBatchDocument, mediaTypes: JSON_TYPE },
      answers: { 200: { description: "One result for each item", schema: CreateBatchResult, headers: REPLAYED_FIELD } },
      problems: [...BODY_PROBLEMS, ...IDEMPOTENCY_PROBLEMS],
    },
    async handle(request, author) {
      return budget.within(request, CREATE_BATCH_BODY_LIMIT, async () => {
        const key = readIdempotencyKey(request);
        const { value, bytes } = await readJsonBody(request, CREATE_BATCH_BODY_LIMIT);
        if (key === null) return createAll(value, author);
        return createAllOnce(value, author, describeRequest("POST /v1/links:batch", author.owner, key, bytes));
      });
    },
  });

  const revokeLinks = call({
    scope: "links:revoke",
    query: RevokeQuery,
    describe: {
      operationId: "revokeLinks",
      summary: "Revoke up to 1,000 links at once",
      description: `One transaction: all that can be revoked are revoked together. What can be no code is 404 in its place, as any code that is unknown. ${REVOKE_DESCRIPTION}`,
      group: "Revocation",
      body: { schema: RevokeBatchRequest, mediaTypes: JSON_TYPE },
      answers: {
        200: { description: "One result for each code; in force unless `wait=committed`", schema: RevokeBatchResult },
        202: { description: "One result for each code; not yet known to be in force", schema: RevokeBatchResult },
      },
      problems: BODY_PROBLEMS,
    },
    async handle(request, author, query) {
      const { revoked, results } = await budget.within(request, REVOKE_BATCH_BODY_LIMIT, async () => {
        const body = validateRevocation(await readJsonObject(request, REVOKE_BATCH_BODY_LIMIT));
        return revokeAll(body.codes, author);
      });
      const { status, effective } = await waitUntilEffective(deps, revoked, request, query);
      const count = revoked.filter(({ outcome }) => outcome === "revoked").length;
      return { status, body: { results, effective }, count };
    },
  });

  return { "/v1/links\\:batch": { post: createLinks }, "/v1/links\\:revoke": { post: revokeLinks } };
}

function countLinks(outcomes: readonly BatchOutcome[]): number {
  return outcomes.filter((outcome) => !(outcome instanceof Problem)).length;
}

/** The same 404 as of an unknown code, which says why no link can have it. */
function presentNoCode(index: number) {
  const field = `codes[${index}]`;
  const detail = "must be 3 to 32 letters, digits, - and _, or no link can have it";
  return {
    status: 404,
    problem: problemBody(new Problem("not-found", `${field} ${detail}`, [{ field, rule: "code", detail }])),
  };
}

function presentRevoked(revoked: RevokedCode | undefined) {
  if (!revoked || revoked.outcome === "not-found") return { status: 404, problem: problemBody(linkNotFound()) };
  return { status: 200, ...presentRevocation(revoked) };
}
