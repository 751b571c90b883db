import type { DropReport } from "@linkfence/contracts";

const [COMMA, END] = [Buffer.from(","), Buffer.from("]}")];

/**
 * Creates the function that makes a batch of clicks that are JSON already.
 * @param sender name under which the ingest's log speaks of this process
 */
export function createBatchBody(sender: string) {
  return (payloads: readonly Buffer[], dropped: DropReport): Buffer => {
    const head = JSON.stringify({ sender, dropped });
    const parts: Buffer[] = [Buffer.from(`${head.slice(0, -1)},"clicks":[`)];
    for (const payload of payloads) parts.push(payload, COMMA);
    parts[parts.length - 1] = END;
    return Buffer.concat(parts);
  };
}
