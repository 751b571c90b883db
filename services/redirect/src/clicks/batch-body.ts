const [COMMA, END] = [Buffer.from(","), Buffer.from("]}")];

/**
 * Creates the function that makes a batch of clicks that are JSON already.
 * @param sender name under which the ingest's log speaks of this process
 */
export function createBatchBody(sender: string) {
  const begin = Buffer.from(`{"sender":${JSON.stringify(sender)},"clicks":[`);
  return (payloads: readonly Buffer[]): Buffer => {
    const parts: Buffer[] = [begin];
    for (const payload of payloads) parts.push(payload, COMMA);
    parts[parts.length - 1] = END;
    return Buffer.concat(parts);
  };
}
