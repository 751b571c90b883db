import { startTestServer } from "./test-server.mjs";

/** A test database needs to survive nothing, so it need not wait for the disk. */
const UNSAFE_BUT_FAST = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

export async function setup() {
  globalThis.linkfenceTestServer = await startTestServer(UNSAFE_BUT_FAST);
}

export { setup as default };
