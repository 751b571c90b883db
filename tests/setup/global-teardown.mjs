export async function teardown() {
  await globalThis.linkfenceTestServer.stop();
}

export { teardown as default };
