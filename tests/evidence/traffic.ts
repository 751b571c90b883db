// Visitors behind a load balancer, while links are revoked one after the other: each is first led on by every process, then
// revoked, and asked for until every process has said that it is gone.
import { keepOn, waitFor } from "@linkfence/testkit";
import type { RedirectProcess } from "./redirect-process.ts";
import type { Registered, Revoked } from "./registered.ts";
import { createRotation, type Rotation } from "./rotation.ts";

/** Each sends a request some hundred times a second. */
const VISITORS = 8;
/** Links made in one call, well before they are wanted. */
const STOCK = 50;
/** A link that nobody revokes. */
const STEADY = "steady";

/** One request of a visitor; `status` is 0 where no answer came. */
type Request = { code: string; status: number; sentAt: number; at: RedirectProcess };

/** Starts visitors, and revocations that wait to be in force. `add` puts a process into the rotation. */
export async function startTraffic(at: Registered) {
  await at.api("POST", "/v1/links", { alias: STEADY, target: "https://example.com/steady" });
  const rotation = createRotation();
  for (const redirect of at.redirects) rotation.add(redirect);
  await waitFor("every process in the rotation", () => rotation.members().length === at.redirects.length);
  const over = new AbortController();
  const requests: Request[] = [];
  const underWay = new Set<Omit<Request, "status">>();
  const revoked = new Map<string, Revoked>();
  let current = STEADY;

  async function visit(code: string): Promise<void> {
    const at = rotation.next();
    if (!at) return;
    const request = { code, sentAt: performance.now(), at };
    underWay.add(request);
    const status = await at.status(code).catch(() => 0);
    underWay.delete(request);
    requests.push({ ...request, status });
  }

  /** Waits until each process that is in the rotation by then has answered so. */
  async function seen(code: string, status: number): Promise<void> {
    const from = requests.length;
    await waitFor(`${status} for ${code} from each process`, () => {
      const said = new Set(requests.slice(from).flatMap((each) => (isAnswer(each, code, status) ? [each.at] : [])));
      return over.signal.aborted || (said.size > 0 && rotation.members().every((redirect) => said.has(redirect)));
    });
  }

  async function revokeOn(): Promise<void> {
    for (let stock = 1; !over.signal.aborted; stock += 1) {
      for (const code of await at.create(`roll-${stock}-`, STOCK)) {
        if (over.signal.aborted) return;
        current = code;
        await seen(code, 302);
        revoked.set(code, await at.revoke(code));
        await seen(code, 410);
      }
    }
  }

  const visiting = Array.from({ length: VISITORS }, (_, visitor) =>
    keepOn(over.signal, () => visit(visitor % 2 === 0 ? current : STEADY)),
  );
  const working = Promise.all([...visiting, revokeOn()]);
  working.catch(() => {}); // told by `stop`
  return {
    add: (redirect: RedirectProcess) => rotation.add(redirect),
    members: (): ReturnType<Rotation["members"]> => rotation.members(),
    revoked: (): readonly Revoked[] => [...revoked.values()],
    /** Whether a process owes an answer to a request that was sent after a moment. */
    owes: (redirect: RedirectProcess, moment: number): boolean =>
      [...underWay].some(({ at, sentAt }) => at === redirect && sentAt > moment),
    /** Ends it after what is under way. */
    async stop() {
      over.abort();
      await working;
      await rotation.stop();
      return judge(requests, revoked);
    },
  };
}

const isAnswer = (request: Request, code: string, status: number) => request.code === code && request.status === status;

function judge(requests: readonly Request[], revoked: ReadonlyMap<string, Revoked>) {
  const confirmedAt = (code: string) => {
    const { effective, answeredAt } = revoked.get(code) ?? {};
    return effective?.confirmed ? (answeredAt ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  };
  const after = requests.filter(({ code, sentAt }) => sentAt > confirmedAt(code));
  return {
    requests: requests.length,
    /** Neither led on nor, but for the steady link, told that the link is gone. */
    failed: requests.filter(({ code, status }) => status !== 302 && (status !== 410 || code === STEADY)).length,
    /** Requests for a link that were sent after its confirmation, and those of them that were led on. */
    after: after.length,
    old: after.filter(({ status }) => status === 302).length,
    revoked: [...revoked.values()],
  };
}
