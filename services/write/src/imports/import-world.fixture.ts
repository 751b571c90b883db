// Imports in the test's own process, on a database of its own: by the importer itself, with any pieces of any file, and
// over HTTP with little patience.
import { createDatabase } from "@linkfence/db";
import { createErrorHandler, createLogger, listen } from "@linkfence/service-shell";
import { createTestDatabase } from "@linkfence/testkit";
import express from "express";
import { createCounts } from "../counts.ts";
import { createAudit } from "../http/audit.ts";
import { toDatabaseProblem } from "../http/database-problem.ts";
import { importRoutes } from "../http/imports-routes.ts";
import { identifyRequests } from "../http/request-id.ts";
import { addRoutes } from "../http/routes.ts";
import { setSecurityHeaders } from "../http/security-headers.ts";
import { createImportBatches, type ImportBatches } from "../store/import-batches.ts";
import { createImportLocks, type ImportLocks } from "../store/import-lock.ts";
import { createImportStore } from "../store/imports.ts";
import { createImporter, type ImportOrder } from "./importer.ts";
import { createImports, type ImportsOptions } from "./imports.ts";
import { UploadBroken } from "./upload.ts";

export type ImportWorld = Awaited<ReturnType<typeof startImportWorld>>;

const AUTHOR = { owner: "admin", keyId: "k" };
/** A batch on a busy machine. */
const TIMEOUT_MS = 20_000;

type Parts = { batches: ImportBatches; locks: ImportLocks };

/** @param over bounds that are to be otherwise */
export async function startImportWorld(over: Partial<Pick<ImportsOptions, "places" | "maxBytes" | "patienceMs">> = {}) {
  const database = await createTestDatabase("main");
  const db = createDatabase({ url: database.url, applicationName: "imports", max: 8, queryTimeoutMs: TIMEOUT_MS });
  const counts = createCounts();
  const store = createImportStore(db);
  let drawn = 0;
  const newCode = () => `code${String(drawn++).padStart(6, "0")}`;
  const parts: Parts = {
    batches: createImportBatches({ db, newCode, counts, timeoutMs: TIMEOUT_MS }),
    locks: createImportLocks(db, TIMEOUT_MS),
  };
  const rules = { ownHosts: [], privateHosts: "allow" } as const;
  const createWith = (weakened: Partial<Parts> = {}) =>
    createImporter({ ...parts, ...weakened, store, rules, now: Date.now, counts });
  const imports = createImports({
    ...{ importer: createWith(), counts, places: 10, maxBytes: 1_000_000, toProblem: toDatabaseProblem },
    ...over,
  });

  const app = express().disable("x-powered-by").disable("etag");
  app.use(identifyRequests, setSecurityHeaders, (_request, response, next) => {
    response.setHeader("Cache-Control", "no-store");
    next();
  });
  const routes = importRoutes({ imports, importStore: store, shortUrlOf: (code) => `https://sho.example/${code}` });
  addRoutes(app, routes, {
    admit: async () => ({ ...AUTHOR, scopes: ["links:create"] }),
    audit: createAudit({ info: () => {} }),
  });
  const logger = createLogger("write", "error");
  app.use(createErrorHandler(logger, toDatabaseProblem));
  const server = await listen(app, { port: 0, host: "127.0.0.1", maxConnections: 100 });

  const orderOf = (over: Partial<ImportOrder>): ImportOrder => ({
    ...{ author: AUTHOR, name: { key: "k1" }, mapping: "linkfence", format: "csv", dryRun: false },
    ...over,
  });

  return {
    orderOf,
    database,
    counts: counts.imports,
    parts,
    createWith,
    url: `http://127.0.0.1:${server.port}`,
    /** Imports pieces of a file. Rejects as the importer does; with `UploadBroken` behind the last piece unless it is null. */
    upload(
      importer: ReturnType<typeof createWith>,
      pieces: readonly (Buffer | null)[],
      over: Partial<ImportOrder> = {},
    ) {
      const left = [...pieces];
      const next = async () => {
        const piece = left.shift();
        if (piece === undefined) throw new UploadBroken("client-gone");
        return piece;
      };
      return importer.run({ order: orderOf(over), upload: { next }, begun: () => {} });
    },
    /** All that an import came to, without its id and its times. */
    async outcome() {
      const imports = await database.sql`
        SELECT lines::int, created::int, already::int, refused::int, bytes::int, errors_kept::int, ignored_columns,
               finished_at IS NOT NULL AS done, encode(digest, 'hex') AS digest
          FROM import ORDER BY id`;
      const errors = await database.sql`SELECT line::int, field, rule, code, detail FROM import_error ORDER BY line`;
      const links = await database.sql`
        SELECT import_line::int AS line, target, kind, title, CASE kind WHEN 'ALIAS' THEN code END AS alias
          FROM link ORDER BY import_line, code`;
      return { imports: [...imports], errors: [...errors], links: [...links] };
    },
    async forgetAll() {
      await database.sql`TRUNCATE import_alias, import_error, import, link CASCADE`;
    },
    async stop() {
      imports.stop();
      await server.close(5000);
      await db.close();
      await database.drop();
    },
  };
}
