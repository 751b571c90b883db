import { type Static, Type } from "typebox";
import { Nullable } from "./link.ts";

/** One redirect process, as the registry shows it. */
export const Instance = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    address: Type.String(),
    ttlMs: Type.Integer({ description: "Its CACHE_TTL_MS" }),
    followsFeed: Type.Boolean({ description: "False where neither polls nor notifications are on" }),
    appliedSeq: Type.Integer({ description: "The last change that it has applied and acknowledged" }),
    lag: Type.Integer({ description: "Numbers between that and the newest change" }),
    current: Type.Boolean({ description: "It has acknowledged the newest change" }),
    renewals: Type.Integer({ description: "Its renewals so far, by its own count" }),
    silentMs: Nullable(
      Type.Integer({ description: "Since its last renewal, by the clock of the process that answers" }),
    ),
  },
  { additionalProperties: false },
);

/** Everybody who has to acknowledge a revocation. */
export const InstanceList = Type.Object(
  {
    epoch: Type.String({ description: "The history of the database: server and timeline" }),
    settled: Type.Boolean({ description: "Acknowledgements confirm; false for a while after a failover" }),
    head: Type.Integer({ description: "The newest change" }),
    items: Type.Array(Instance),
  },
  { additionalProperties: false },
);
export type InstanceList = Static<typeof InstanceList>;
