import { type Static, Type } from "typebox";

/** What the ingest knows of one code. A code it never saw has a total of 0: whether the link exists is not its business. */
export const LinkStats = Type.Object({ code: Type.String(), total: Type.Integer() }, { additionalProperties: false });
export type LinkStats = Static<typeof LinkStats>;
