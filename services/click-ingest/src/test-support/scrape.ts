/** Reads a metrics page into sums by name: the samples of one name, whatever their labels, are added up. */
export async function scrapeSums(opsUrl: string): Promise<(name: string) => number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const sums = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name = "", value = ""] = /^([a-z_]+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    if (name !== "") sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return (name) => {
    const sum = sums.get(name);
    if (sum === undefined) throw new Error(`the metrics page has no ${name}`);
    return sum;
  };
}

/**
 * The ledger of a metrics page; `missing` is 0 when received = inserted + duplicate + dead-lettered + refused + in flight + given
 * back.
 */
export async function scrapeLedger(opsUrl: string) {
  const sum = await scrapeSums(opsUrl);
  const total = (what: string) => sum(`linkfence_ingest_clicks_${what}_total`);
  const received = total("received");
  const inserted = total("inserted");
  const duplicate = total("duplicate");
  const deadLettered = total("dead_lettered");
  const refused = total("refused");
  const givenBack = total("given_back");
  const inFlight = sum("linkfence_ingest_clicks_in_flight");
  const missing = received - inserted - duplicate - deadLettered - refused - givenBack - inFlight;
  return { received, inserted, duplicate, deadLettered, refused, givenBack, inFlight, missing };
}
