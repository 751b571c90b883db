import { readFile, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { LocalPostgresError } from "./local-postgres-error.ts";

/** The account the server runs as when it is not the current one. */
export type ServerAccount = { uid: number; gid: number; name: string };

// PostgreSQL refuses to run as root. In this order: an account made for the purpose, the one every distribution's
// PostgreSQL package uses (macOS: with an underscore), and the one every system has.
const CANDIDATES = ["linkfence", "postgres", "_postgres", "nobody"];

/**
 * Chooses the account for the server. Not root: the current user (undefined). Root: the owner of an existing cluster,
 * so that the choice of the first start stands, else the first of {@link CANDIDATES} in /etc/passwd.
 * @throws LocalPostgresError `unsupported-platform` when there is no usable account.
 */
export async function chooseServerAccount(clusterDir: string): Promise<ServerAccount | undefined> {
  if (process.getuid?.() !== 0) {
    assertNamedUser();
    return undefined;
  }
  const owner = await ownerOf(clusterDir);
  if (owner !== undefined && owner.uid !== 0) {
    return { ...owner, name: `user id ${owner.uid}` };
  }
  return accountFrom(await readFile("/etc/passwd", "utf8").catch(() => ""));
}

/**
 * @param passwd text of /etc/passwd (passwd(5))
 * @throws LocalPostgresError `unsupported-platform` when none of the candidates is in it
 */
export function accountFrom(passwd: string): ServerAccount {
  const entries = new Map(passwd.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.split(":")]));
  for (const name of CANDIDATES) {
    const [uid, gid] = (entries.get(name) ?? []).slice(2, 4).map(Number);
    if (uid !== undefined && gid !== undefined && Number.isInteger(uid) && Number.isInteger(gid) && uid !== 0) {
      return { uid, gid, name };
    }
  }
  throw new LocalPostgresError(
    "unsupported-platform",
    `PostgreSQL must not run as root, and none of the accounts ${CANDIDATES.join(", ")} exists. ` +
      'Create one (e.g. "useradd --system linkfence"), or start as an ordinary user, or set DATABASE_URL and ' +
      "STATS_DATABASE_URL to an existing server.",
  );
}

async function ownerOf(path: string): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const { uid, gid } = await stat(path);
    return { uid, gid };
  } catch {
    return undefined; // no cluster yet
  }
}

/** initdb asks for the name of its user and gives up without one, which happens in containers with a bare `--user`. */
function assertNamedUser(): void {
  try {
    userInfo();
  } catch (cause) {
    throw new LocalPostgresError(
      "unsupported-platform",
      `The current user (id ${process.getuid?.()}) has no entry in /etc/passwd, and PostgreSQL's initdb insists on one. ` +
        "Add an entry, or set DATABASE_URL and STATS_DATABASE_URL to an existing server.",
      { cause },
    );
  }
}
