// One row for each operation of the API: what of another owner it could reach, and what a stranger gets instead. An
// operation without a row fails the test, so that nobody adds a call without saying this of it.
import type { ApiWorld, Body } from "../api-world.fixture.ts";
import { sendFile } from "../imports.fixture.ts";

/** Something that belongs to somebody. */
export type Thing = {
  kind: string;
  /** By which operations name it. */
  id: string;
  /** All that its owner can see of it. */
  look: () => Promise<unknown>;
};
/** Makes something of the owner of a key. */
export type Maker = (world: ApiWorld, key: string) => Promise<Thing>;
/** What a request for a thing carries beside its path; path parameters are the thing's id unless they are named. */
export type Ask = { params?: Record<string, string>; query?: string; body?: unknown; file?: string };

export type Row =
  | { touchesNothing: string }
  | {
      things: readonly Maker[];
      ask?: (thing: Thing) => Ask;
      /**
       * What a stranger gets: 404 `not-found`; an answer in which the thing does not occur (`hidden`); a batch whose only
       * result is that 404 (`item-not-found`); or another refusal, by its code.
       */
      stranger: "not-found" | "hidden" | "item-not-found" | "alias-taken" | "invalid-request";
      /** The status that the owner gets for the same request, afterwards. */
      owner: number;
    };

const revokedLink = linkMaker("a revoked link", { revoked: true });
const links = [
  linkMaker("a link with a random code", {}),
  linkMaker("a link with an alias", { alias: true }),
  revokedLink,
];

export const rows: Readonly<Record<string, Row>> = {
  listLinks: { things: links, ask: () => ({ query: "limit=100" }), stranger: "hidden", owner: 200 },
  createLink: {
    things: links,
    ask: ({ id }) => ({ body: { target: "https://stranger.example/", alias: id } }),
    stranger: "alias-taken",
    owner: 409,
  },
  createLinks: { touchesNothing: "each of its items is judged as createLink judges one" },
  getLink: { things: links, stranger: "not-found", owner: 200 },
  updateLink: { things: links, ask: () => ({ body: { title: "changed" } }), stranger: "not-found", owner: 200 },
  revokeLink: { things: links, stranger: "not-found", owner: 200 },
  revokeLinks: { things: links, ask: ({ id }) => ({ body: { codes: [id] } }), stranger: "item-not-found", owner: 200 },
  getRevocation: { things: [revokedLink], stranger: "not-found", owner: 200 },
  listInstances: { touchesNothing: "the same for every holder of an admin key, who may see all of them" },
  getLinkStats: { things: links, stranger: "not-found", owner: 200 },
  listClicks: { things: links, stranger: "not-found", owner: 200 },
  getStats: { touchesNothing: "it adds up what belongs to the caller's own owner, whose name is not asked for" },
  listChanges: { things: [revokedLink], ask: () => ({ query: "limit=1000" }), stranger: "hidden", owner: 200 },
  importLinks: {
    things: [importMaker],
    ask: ({ id }) => ({ query: `importId=${id}`, file: IMPORT_FILE }),
    stranger: "not-found",
    owner: 200,
  },
  listImports: { things: [importMaker], ask: () => ({ query: "limit=100" }), stranger: "hidden", owner: 200 },
  getImport: { things: [importMaker], stranger: "not-found", owner: 200 },
  listImportErrors: { things: [importMaker], stranger: "not-found", owner: 200 },
  listImportLinks: { things: [importMaker], stranger: "not-found", owner: 200 },
  startExport: {
    things: links,
    ask: ({ id }) => ({ body: { codes: [id] } }),
    stranger: "invalid-request",
    owner: 202,
  },
  listExports: { things: [exportMaker], ask: () => ({ query: "limit=100" }), stranger: "hidden", owner: 200 },
  getExport: { things: [exportMaker], stranger: "not-found", owner: 200 },
  // There is nobody to write it: it waits, which is more than a stranger is told.
  downloadExport: { things: [exportMaker], stranger: "not-found", owner: 409 },
  cancelExport: { things: [exportMaker], stranger: "not-found", owner: 200 },
  listKeys: { things: [keyMaker], ask: () => ({ query: "limit=100" }), stranger: "hidden", owner: 200 },
  createKey: { touchesNothing: "it makes a key of the caller's own owner" },
  rotateKey: { things: [keyMaker], stranger: "not-found", owner: 201 },
  revokeKey: { things: [keyMaker], stranger: "not-found", owner: 204 },
  getOpenApiDocument: { touchesNothing: "the same for everybody" },
  getDocsPage: { touchesNothing: "the same for everybody" },
  getDocsFile: { touchesNothing: "the same for everybody" },
};

const IMPORT_FILE = "target\nhttps://owner.example/imported\n";
let made = 0;

function linkMaker(kind: string, { alias = false, revoked = false }): Maker {
  return async (world, key) => {
    made += 1;
    const body: Body = { target: `https://owner.example/${made}`, title: `of its owner ${made}` };
    const { json } = await world.api(
      "POST",
      "/v1/links",
      { ...body, ...(alias ? { alias: `owned-${made}` } : {}) },
      key,
    );
    const id = String(json.code);
    if (revoked) await world.api("DELETE", `/v1/links/${id}`, undefined, key);
    return { kind, id, look: async () => (await world.api("GET", `/v1/links/${id}`, undefined, key)).json };
  };
}

async function importMaker(world: ApiWorld, key: string): Promise<Thing> {
  const { body } = await sendFile(world.write.url, key, IMPORT_FILE);
  const { id } = body;
  return {
    kind: "an import",
    id,
    look: async () => (await world.api("GET", `/v1/imports/${id}`, undefined, key)).json,
  };
}

async function exportMaker(world: ApiWorld, key: string): Promise<Thing> {
  const { json } = await world.api("POST", "/v1/exports", {}, key);
  const id = String(json.id);
  return {
    kind: "an export",
    id,
    look: async () => (await world.api("GET", `/v1/exports/${id}`, undefined, key)).json,
  };
}

async function keyMaker(world: ApiWorld, key: string): Promise<Thing> {
  const { json } = await world.api("POST", "/v1/keys", { name: "of its owner", scopes: ["links:read"] }, key);
  const id = String(json.id);
  return {
    kind: "a key",
    id,
    look: async () => {
      const page = await world.api<{ items: Body[] }>("GET", "/v1/keys?limit=100", undefined, key);
      return page.json.items.find((item) => item.id === id);
    },
  };
}
