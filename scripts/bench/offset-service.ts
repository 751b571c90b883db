// The admin API with another listing: pages that are counted off from the newest link, which is what the real one is
// compared with. Its cursor is the number of links before the page. Everything else of it is the product's.
import { createDatabase } from "@linkfence/db";
import { createLogger, listen } from "@linkfence/service-shell";
import { readWriteConfig } from "../../services/write/src/config.ts";
import { createCounts } from "../../services/write/src/counts.ts";
import { createPartialApp } from "../../services/write/src/partial-app.fixture.ts";
import { createOffsetListing } from "./offset-listing.ts";

const config = readWriteConfig(process.env);
const logger = createLogger("write", config.LOG_LEVEL);
const db = createDatabase({
  url: config.DATABASE_URL,
  applicationName: "linkfence-bench",
  max: config.DATABASE_POOL_MAX,
  queryTimeoutMs: config.QUERY_TIMEOUT_MS,
});
const app = createPartialApp({ db, counts: createCounts() }, { listing: createOffsetListing(db), logger });
const server = await listen(app, { port: config.PORT, host: config.HOST, maxConnections: 1000 });
process.once("SIGTERM", () => void server.close(1000).then(() => db.close()));
logger.info("listening", { port: server.port });
