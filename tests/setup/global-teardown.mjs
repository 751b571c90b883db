import { rmSync } from "node:fs";

export async function teardown() {
  const { server, directory } = globalThis.linkfenceTests;
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
}

export { teardown as default };
