import { type Static, Type } from "typebox";
import { KEY_NAME_MAX } from "./key.ts";

/** Most clicks in one batch from a redirect process to the ingest. */
export const CLICK_BATCH_LIMIT = 1000;
/** A user agent is cut to this many UTF-16 units before it is sent. */
export const USER_AGENT_MAX = 512;
/** Longest host name (RFC 1035 section 2.3.4). */
export const REFERRER_HOST_MAX = 255;

/**
 * One answered redirect. `id` is a UUIDv7 that carries the request's time; it is made once, before the first attempt
 * to store or send, so that every repetition can be told from a new click. `at` is the request's time in ms since 1970
 * (UTC). The last three are missing where nothing is known of them: no prefetch, no country, no owner.
 */
export const Click = Type.Object(
  {
    id: Type.String({ pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" }),
    code: Type.String({ pattern: "^[A-Za-z0-9_-]{3,32}$" }),
    version: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    at: Type.Integer({ minimum: 0, maximum: 253_402_300_799_999 }),
    referrerHost: Type.Union([Type.String({ maxLength: REFERRER_HOST_MAX }), Type.Null()]),
    userAgent: Type.Union([Type.String({ maxLength: USER_AGENT_MAX }), Type.Null()]),
    /** The browser said that it only fetches ahead: nobody has followed the link yet. */
    prefetch: Type.Optional(Type.Boolean()),
    /** ISO 3166-1 alpha-2, as a trusted proxy or the operator's own file said. */
    country: Type.Optional(Type.String({ pattern: "^[A-Z]{2}$" })),
    owner: Type.Optional(Type.String({ minLength: 1, maxLength: KEY_NAME_MAX })),
  },
  { additionalProperties: false },
);
export type Click = Static<typeof Click>;

/** A name for logs and for whoever looks at dead letters. */
const SENDER = Type.String({ pattern: "^[A-Za-z0-9._:-]{1,64}$" });

/** Reasons that one report may name: more than there are, as old and new processes run side by side. */
const DROP_REASONS_MAX = 16;

/**
 * Names under which a report tells, among counts of drops, of unclean ends of earlier processes: a bound of the clicks that they
 * took, and how many there were of which nobody knows one.
 */
export const KILLED = { atMost: "killed", unknown: "killed-unknown" } as const;

/**
 * What a redirect process has dropped since its start, by reason: counters that only grow, so that a report that comes twice,
 * late or never changes nothing that the next one does not put right. `incarnation` is the process's own, and another one
 * after each start.
 */
export const DropReport = Type.Object(
  {
    incarnation: Type.String({ pattern: "^[A-Za-z0-9-]{1,64}$" }),
    /** Since when its counters count, in ms since 1970. */
    since: Type.Integer({ minimum: 0, maximum: 253_402_300_799_999 }),
    totals: Type.Array(
      Type.Object(
        {
          reason: Type.String({ pattern: "^[a-z][a-z0-9-]{0,31}$" }),
          total: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        },
        { additionalProperties: false },
      ),
      { maxItems: DROP_REASONS_MAX },
    ),
  },
  { additionalProperties: false },
);
export type DropReport = Static<typeof DropReport>;

/** What a redirect process dropped until its very end, where it has nothing to send beside that. */
export const LastDrops = Type.Object({ sender: SENDER, dropped: DropReport }, { additionalProperties: false });
export type LastDrops = Static<typeof LastDrops>;

/** Each click is judged on its own, so that one bad one does not sink its neighbours. */
export const ClickBatch = Type.Object(
  {
    sender: SENDER,
    clicks: Type.Array(Type.Unknown(), { minItems: 1, maxItems: CLICK_BATCH_LIMIT }),
    /** Missing from an older redirect process. */
    dropped: Type.Optional(DropReport),
  },
  { additionalProperties: false },
);
export type ClickBatch = Static<typeof ClickBatch>;

/**
 * Answered only after the commit. `received = inserted + duplicate + deadLettered + refused`, always, where what is missing
 * counts as 0. A dead letter is kept, with its reason, for an operator; what is refused is not.
 */
export const ClickBatchResult = Type.Object(
  {
    received: Type.Integer(),
    inserted: Type.Integer(),
    duplicate: Type.Integer(),
    deadLettered: Type.Optional(Type.Integer()),
    refused: Type.Integer(),
  },
  { additionalProperties: false },
);
export type ClickBatchResult = Static<typeof ClickBatchResult>;
