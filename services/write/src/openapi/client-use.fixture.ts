// A client of a page, to be compiled together with the types that are generated from the document (`./api.ts`). It calls
// every operation: one that is missing here, or whose parameters, body or answer became another, does not compile.

/** The client itself. Nothing in it knows of one operation more than of the others. */
const CLIENT = `import type { operations } from "./api.ts";

type Name = keyof operations;
type Given<N extends Name> = operations[N] extends { requestBody: { content: infer C } } ? { body: C[keyof C] }
  : operations[N] extends { requestBody?: { content: infer C } } ? { body?: C[keyof C] }
  : { body?: never };
type Parameters<N extends Name> = operations[N]["parameters"];
type Request<N extends Name> = Pick<Parameters<N>, "query" | "path"> & { header?: Parameters<N>["header"] } & Given<N>;
type ContentOf<A> = A extends { content: infer C } ? C[keyof C] : undefined;
type Success<N extends Name> = {
  [S in keyof operations[N]["responses"]]: S extends 200 | 201 | 202 | 204 | 206 ? ContentOf<operations[N]["responses"][S]> : never;
}[keyof operations[N]["responses"]];
type Refused<N extends Name> = {
  [S in keyof operations[N]["responses"]]: S extends 200 | 201 | 202 | 204 | 206 | 304 ? never : ContentOf<operations[N]["responses"][S]>;
}[keyof operations[N]["responses"]];

declare function call<N extends Name>(name: N, request: Request<N>): Promise<Success<N>>;
declare function refusal<N extends Name>(name: N): Refused<N>;
`;

type Use = { request: string; read: string; wrong: string };

/** For each operation a request, something that its answer has, and a request that must not compile. */
export const USES: Readonly<Record<string, Use>> = {
  listLinks: {
    request: `{ query: { limit: 5, state: "revoked" } }`,
    read: "answer.items.map(({ code, tags }) => code + tags.join())",
    wrong: `{ query: { limits: 5 } }`,
  },
  createLink: {
    request: `{ header: { "Idempotency-Key": "k" }, body: { target: "https://example.com/", expiresAt: null } }`,
    read: "answer.shortUrl.length + answer.version",
    wrong: `{ body: { alias: "without-a-target" } }`,
  },
  getLink: {
    request: `{ path: { code: "abc" } }`,
    read: `answer.state === "REVOKED" ? answer.revokedAt : null`,
    wrong: "{}",
  },
  updateLink: {
    request: `{ path: { code: "abc" }, body: { title: null, tags: ["t"] } }`,
    read: "answer.title?.length",
    wrong: `{ path: { code: "abc" }, body: { target: "https://example.com/" } }`,
  },
  revokeLink: {
    request: `{ path: { code: "abc" }, query: { wait: "committed" } }`,
    read: "answer.effective.confirmed",
    wrong: `{ path: { code: "abc" }, query: { wait: "for-ever" } }`,
  },
  getRevocation: {
    request: `{ path: { code: "abc" } }`,
    read: `answer.effective.confirmed ? answer.effective.by : answer.effective.missing?.join()`,
    wrong: "{}",
  },
  listInstances: {
    request: "{}",
    read: "answer.items.map((one) => one.lag - one.ttlMs)",
    wrong: `{ query: { limit: 5 } }`,
  },
  getLinkStats: {
    request: `{ path: { code: "abc" } }`,
    read: `typeof answer === "string" ? answer : answer.total.toFixed() + answer.series[0]?.start`,
    wrong: `{ path: { code: 5 } }`,
  },
  listClicks: {
    request: `{ path: { code: "abc" }, query: { limit: 5, after: "cursor" } }`,
    read: "answer.items[0]?.referrer",
    wrong: `{ path: { code: "abc" }, query: { limit: "5" } }`,
  },
  getStats: {
    request: `{ query: { from: "2026-01-31", interval: "hour", timezone: "Europe/Berlin" } }`,
    read: "answer.links?.map(({ code, total }) => code + total)",
    wrong: `{ query: { interval: "week" } }`,
  },
  createLinks: {
    request: `{ body: { links: [{ target: "https://example.com/" }] } }`,
    read: `answer.results.map((one) => ("link" in one ? one.link.code : one.problem.detail))`,
    wrong: `{ body: { links: { target: "https://example.com/" } } }`,
  },
  revokeLinks: {
    request: `{ body: { codes: ["abc"] } }`,
    read: `answer.results.map((one) => ("outcome" in one ? one.seq : one.problem.code))`,
    wrong: `{ body: { codes: [5] } }`,
  },
  startExport: {
    request: `{ header: { "Idempotency-Key": "k" }, body: { codes: ["abc"], format: "jsonl", gzip: true } }`,
    read: "answer.id + answer.state",
    wrong: `{ body: { format: "xlsx" } }`,
  },
  listExports: {
    request: `{ query: { limit: 5, after: "cursor" } }`,
    read: "answer.items[0]?.error?.code",
    wrong: `{ query: { limit: "5" } }`,
  },
  getExport: {
    request: `{ path: { id: "id" } }`,
    read: "answer.rows / (answer.rowsEstimated ?? 1)",
    wrong: "{}",
  },
  cancelExport: {
    request: `{ path: { id: "id" } }`,
    read: "answer.finishedAt",
    wrong: "{}",
  },
  downloadExport: {
    request: `{ path: { id: "id" } }`,
    read: "answer.length",
    wrong: "{}",
  },
  listKeys: {
    request: `{ query: { owner: "ann", after: "cursor" } }`,
    read: "answer.items[0]?.lastUsedAt",
    wrong: `{ query: { limit: "5" } }`,
  },
  createKey: {
    request: `{ body: { name: "n", scopes: ["links:read"] } }`,
    read: "answer.secret.length",
    wrong: `{ body: { name: "n", scopes: ["everything"] } }`,
  },
  revokeKey: {
    request: `{ path: { id: "id" } }`,
    read: "answer satisfies undefined",
    wrong: `{ path: { id: "id" }, body: {} }`,
  },
  rotateKey: {
    request: `{ path: { id: "id" } }`,
    read: "answer.replacedBy",
    wrong: `{ path: { id: "id" }, body: { overlap: 5 } }`,
  },
  listChanges: {
    request: `{ query: { after: 5 }, header: { "Last-Event-ID": 5 } }`,
    read: `typeof answer === "string" ? answer.split("\\n\\n") : answer.position`,
    wrong: `{ query: { after: "start" } }`,
  },
  listImports: { request: `{ query: { limit: 5 } }`, read: "answer.items[0]?.state", wrong: `{ query: { after: 5 } }` },
  importLinks: {
    request: `{ query: { mapping: "yourls", dryRun: "true" }, body: "target" }`,
    read: "answer.errors.map(({ line, rule }) => line + rule)",
    wrong: `{ query: { mapping: "excel" }, body: "target" }`,
  },
  getImport: { request: `{ path: { id: "id" } }`, read: "answer.finishedAt", wrong: `{ path: { importId: "id" } }` },
  listImportErrors: {
    request: `{ path: { id: "id" }, query: { after: 5 } }`,
    read: "answer.items[0]?.field",
    wrong: `{ query: { after: 5 } }`,
  },
  listImportLinks: {
    request: `{ path: { id: "id" } }`,
    read: "answer.items[0]?.shortUrl",
    wrong: `{ path: { id: "id" }, query: { limit: true } }`,
  },
  getOpenApiDocument: { request: "{}", read: "answer.openapi.length", wrong: `{ query: { version: 3 } }` },
  getDocsPage: { request: "{}", read: "answer.length", wrong: `{ body: "x" }` },
  getDocsFile: {
    request: `{ path: { file: "page.js" } }`,
    read: "answer.length",
    wrong: `{ path: { file: "another.js" } }`,
  },
};

/** The client, with a function for each operation, and one that has to be refused below a line that says so. */
export function writeClient(): string {
  const functions = Object.entries(USES).map(
    ([name, { request, read, wrong }]) => `
export async function ${name}() {
  const answer = await call("${name}", ${request});
  return ${read};
}
// @ts-expect-error
export const ${name}Wrongly = () => call("${name}", ${wrong});
export const ${name}Refused: string = refusal("${name}").code;
`,
  );
  const all = `export const every: { [N in Name]: () => Promise<unknown> } = { ${Object.keys(USES).join(", ")} };\n`;
  return [CLIENT, ...functions, all].join("");
}
