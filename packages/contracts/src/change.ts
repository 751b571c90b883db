import { type Static, Type } from "typebox";
import { Nullable, Timestamp } from "./link.ts";

/** Changes in one page at the most: as many as one call can revoke. */
export const CHANGES_LIMIT = 1000;

/** The number of a change. Numbers rise in the order of the commits and have gaps; no two changes have the same one. */
const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** One change of one link; `changedBy` is the id of the key that was used. Links are revoked, and nothing else happens. */
export const LinkChange = Type.Object(
  {
    seq: Seq,
    type: Type.Literal("revoked"),
    code: Type.String(),
    version: Type.Integer(),
    changedAt: Timestamp,
    changedBy: Type.String(),
  },
  { additionalProperties: false },
);
export type LinkChange = Static<typeof LinkChange>;

/** Parameters of the changes: those with a greater `seq` than `after`, and how many of them. */
export const ListChangesQuery = Type.Object(
  {
    after: Type.Optional(Seq),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CHANGES_LIMIT, default: 100 })),
  },
  { additionalProperties: false },
);
export type ListChangesQuery = Static<typeof ListChangesQuery>;

/**
 * One page, in the order of `seq`. `position` is where its reader stands now, and what to ask for changes `after`; `next`
 * is the same where there are more already, and null where there are not.
 */
export const ChangePage = Type.Object(
  { items: Type.Array(LinkChange), next: Nullable(Seq), position: Seq },
  { additionalProperties: false },
);
export type ChangePage = Static<typeof ChangePage>;
