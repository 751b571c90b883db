// What a start says of the process that had the spool before.
import type { Logger } from "@linkfence/service-shell";
import type { Spool } from "./open-spool.ts";

/** Says what became of the clicks of the process before this one. */
export function tellOfEarlier(logger: Logger, spool: Pick<Spool, "left" | "earlier">): void {
  const left = spool.left.reduce((sum, { clicks }) => sum + clicks, 0);
  if (left > 0) logger.info("clicks that an earlier process left are sent first", { clicks: left });
  const { lostLast, missing, damaged, isLastUnknown, isCopy } = spool.earlier;
  if (isCopy)
    logger.warn(
      "the spool was copied or moved here: if its original is in use, its clicks are sent twice, and count once",
    );
  if (isLastUnknown)
    logger.warn(
      "how many clicks the process before this one may have lost is unknown: its account is missing or damaged",
    );
  if (lostLast > 0)
    logger.warn("the process before this one ended uncleanly and may have lost clicks", { atMost: lostLast });
  if (missing > 0)
    logger.error("segments of the spool are missing, and the clicks in them are lost", { clicks: missing });
  if (damaged > 0) logger.error("segments of the spool are damaged, and clicks in them are lost", { atLeast: damaged });
}
