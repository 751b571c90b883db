// Makes the first admin key of an installation: `node dist/admin-key.js --file <path>`. The file is written before the
// key is stored: dying in between leaves a file with a key that does not exist, which the next run replaces. The other
// order would leave a key whose secret nobody has.
import { parseArgs } from "node:util";
import { createDatabase } from "@linkfence/db";
import { configOrExit, readConfig, redact } from "@linkfence/service-shell";
import { Type } from "typebox";
import { configSchema } from "./config.ts";
import { keyFileExists, writeKeyFile } from "./key-file.ts";
import { createKeyStore } from "./store/api-keys.ts";
import { mintKey } from "./store/key-secret.ts";

const HELP = `Makes the first admin key of a linkfence installation and writes it to a file that its owner alone can read.

  node services/write/dist/admin-key.js --file <path> [--new]

  --file <path>  where the key is written (mode 0600)
  --new          makes another key even though there is one; the file is replaced, older keys stay valid
  --help         prints this

DATABASE_URL (or DATABASE_URL_FILE) names the main database, which must be migrated. The answer is one line of JSON
without the secret. Exit status: 0 done or nothing to do, 1 failed, 2 wrong arguments, 78 bad configuration.
`;

/** Another run may hold the lock while it writes its file; both are short. */
const DEADLINE_MS = 15_000;

type Arguments = { file: string; force: boolean };

function readArguments(): Arguments | string {
  try {
    const { values } = parseArgs({
      options: { file: { type: "string" }, new: { type: "boolean" }, help: { type: "boolean" } },
    });
    if (values.help) return HELP;
    if (values.file) return { file: values.file, force: values.new ?? false };
  } catch {
    // An unknown argument: the help says which there are.
  }
  return "";
}

async function makeKey({ file, force }: Arguments, databaseUrl: string): Promise<Record<string, unknown>> {
  const db = createDatabase({
    url: databaseUrl,
    applicationName: "linkfence-admin-key",
    max: 1,
    queryTimeoutMs: DEADLINE_MS,
  });
  try {
    const key = await createKeyStore(db).addAdminKey(force, async () => {
      const { id, text, secretHash } = mintKey();
      await writeKeyFile(file, text);
      return { id, owner: "admin", name: "admin key of the installation", scopes: ["admin"], secretHash };
    });
    if (key) return { created: true, id: key.id, file };
    if (await keyFileExists(file)) return { created: false, file, reason: "an admin key exists already" };
    return { created: false, file, reason: "an admin key exists, but not in this file: make another with --new" };
  } finally {
    await db.close();
  }
}

const wanted = readArguments();
if (typeof wanted === "string") {
  process[wanted === HELP ? "stdout" : "stderr"].write(HELP);
  process.exit(wanted === HELP ? 0 : 2);
}
const { DATABASE_URL } = configOrExit(() =>
  readConfig(Type.Object({ DATABASE_URL: configSchema.properties.DATABASE_URL }), process.env),
);
try {
  process.stdout.write(`${JSON.stringify(await makeKey(wanted, DATABASE_URL))}\n`);
} catch (error) {
  process.stderr.write(`cannot make the key: ${redact(error instanceof Error ? error.message : String(error))}\n`);
  process.exitCode = 1;
}
