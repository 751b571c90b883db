import { startService } from "@linkfence/testkit";

/** Starts the write service as it is run, with limits that count as usual and that nothing here reaches. */
export function startBenchWrite(url: string) {
  const limits = { RATE_LIMIT_KEY_PER_MINUTE: "100000000", RATE_LIMIT_ADDRESS_PER_MINUTE: "100000000" };
  return startService("write", { DATABASE_URL: url, ...limits });
}
