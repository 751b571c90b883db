// Redirect processes that are replaced one after the other, behind a load balancer, while links are revoked.
import { waitFor } from "@linkfence/testkit";
import type { RedirectProcess } from "./redirect-process.ts";
import { type Registered, type Revoked, withRegistered } from "./registered.ts";
import type { EvidenceCase } from "./report.ts";
import { spread } from "./revocation-windows.ts";
import { YES_LASTS_MS } from "./rotation.ts";
import { startTraffic } from "./traffic.ts";

/** What a yes of /readyz lasts for the balancer, and as much again three times for a machine that is busy. */
const STOP_DELAY_MS = 4 * YES_LASTS_MS;

/** Whether a process stands in the registry. */
const isRegistered = async (at: Registered, { service }: RedirectProcess) =>
  (await at.addresses()).some((address) => address.endsWith(`:${new URL(service.url).port}`));

const tookMs = ({ sentAt, answeredAt }: Revoked) => answeredAt - sentAt;

export const q5: EvidenceCase = {
  id: "Q5",
  shows:
    "three processes are replaced one after the other under load, by SIGTERM: no request fails, every revocation is confirmed by all of them, and no request sent after that gets the old target",
  run: (report) =>
    withRegistered({ redirects: 3, ttlMs: 60_000, env: { STOP_DELAY_MS: `${STOP_DELAY_MS}` } }, async (at) => {
      const traffic = await startTraffic(at);
      for (const old of [...at.redirects]) {
        old.service.kill("SIGTERM");
        traffic.add(await at.add());
        report.check("end of a process", await old.service.exited, { code: 0, signal: null });
        report.check("its row right after its end", await isRegistered(at, old), false);
      }
      await waitFor("the three new ones in the rotation alone", () => traffic.members().length === 3);
      const { requests, failed, after, old, revoked } = await traffic.stop();
      const acknowledged = revoked.filter(({ status, effective }) => status === 200 && effective.by === "acknowledged");
      report.check("failed requests", failed, 0);
      report.check("there were requests after a confirmation", after > 0, true);
      report.check("old target to a request sent after the confirmation", old, 0);
      report.check("revocations confirmed by acknowledgements", acknowledged.length, revoked.length);
      report.figure(
        `${requests} requests, ${after} of them after a confirmation; ${revoked.length} revocations: ${spread(revoked.map(tookMs))} to the answer`,
      );
    }),
};

/** Kills a process that owes somebody an answer. Returns from when on it has said nothing more. */
async function killOwing(
  redirect: RedirectProcess,
  traffic: Awaited<ReturnType<typeof startTraffic>>,
): Promise<number> {
  const isMember = () => traffic.members().includes(redirect);
  for (;;) {
    const silentFrom = performance.now();
    redirect.service.kill("SIGSTOP");
    await waitFor("a request, or the end of its turns", () => traffic.owes(redirect, silentFrom) || !isMember());
    if (traffic.owes(redirect, silentFrom)) {
      redirect.service.kill("SIGKILL");
      return silentFrom;
    }
    redirect.service.kill("SIGCONT");
    await waitFor("its turns to begin again", isMember);
  }
}

const KILL_TTL_MS = 2000;

export const q5c: EvidenceCase = {
  id: "Q5c",
  shows: "by SIGKILL instead, requests fail, and a revocation waits until the process that is gone can answer nothing",
  control: true,
  run: (report) =>
    withRegistered({ redirects: 3, ttlMs: KILL_TTL_MS, env: { STOP_DELAY_MS: `${STOP_DELAY_MS}` } }, async (at) => {
      const traffic = await startTraffic(at);
      await waitFor("a revocation", () => traffic.revoked().length > 0);
      const [killed] = at.redirects;
      if (!killed) throw new Error("there is nobody to kill");
      const killedAt = await killOwing(killed, traffic);
      traffic.add(await at.add());
      const isLater = ({ sentAt }: Revoked) => sentAt > killedAt;
      await waitFor("a revocation after the kill", () => traffic.revoked().some(isLater));
      const { failed, old, revoked } = await traffic.stop();
      const first = revoked.find(isLater);
      report.check("requests failed", failed > 0, true);
      report.check(
        "the first revocation after the kill waited for a TTL",
        first && first.answeredAt - killedAt > KILL_TTL_MS,
        true,
      );
      report.check("old target to a request sent after a confirmation", old, 0);
      report.note(
        `${failed} failed; confirmed by ${first?.effective.by} after ${first && tookMs(first).toFixed(0)} ms`,
      );
    }),
};
