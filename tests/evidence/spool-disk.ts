// A spool on a disk that is full, and one whose file is damaged.
import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createHttpClient, findFreePorts, readMetric, waitFor } from "@linkfence/testkit";
import { encodeFrames, readFrames, splitFrames } from "../../services/redirect/src/spool/frame.ts";
import { countClicks, readClickAccount, settleClickAccount } from "./click-account.ts";
import { closingAfterwards } from "./closing.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { type SpooledRedirect, withSpooledRedirect } from "./spooled-redirect.ts";

const run = promisify(execFile);
const DISK_BYTES = 1024 * 1024;

/** Makes a file system of one MiB. */
export async function mountSmallDisk() {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-disk-"));
  const size = `size=${DISK_BYTES},mode=0700`;
  try {
    await run("mount", ["-t", "tmpfs", "-o", size, "linkfence-evidence", directory], { timeout: 10_000 });
  } catch (error) {
    await rm(directory, { recursive: true });
    throw error;
  }
  return {
    directory,
    async unmount(): Promise<void> {
      await run("umount", [directory], { timeout: 10_000 });
      await rm(directory, { recursive: true });
    },
  };
}

export const mountAllowed = async () =>
  mountSmallDisk()
    .then(({ unmount }) => unmount())
    .then(
      () => null,
      () => "a tmpfs of 1 MiB cannot be mounted here, which takes root and CAP_SYS_ADMIN",
    );

/** Makes a click of about 800 bytes: thirteen hundred of them are more than the disk holds. */
const USER_AGENT = "x".repeat(512);
const STEP = 300;
/** Room for 256 KiB of clicks in memory, beside 500 in the ring. */
const RING = "500";

export const c3: EvidenceCase = {
  id: "C3",
  shows:
    "with the spool's disk full every redirect is answered; clicks go through memory, those beyond it are dropped by reason, the account closes, and the spool is written to again when there is room",
  missing: mountAllowed,
  run: (report) =>
    closingAfterwards(async (later) => {
      const disk = await mountSmallDisk();
      later(disk.unmount);
      const port = await findFreePorts(1);
      const env = { CLICK_QUEUE_CAPACITY: RING, CLICK_INGEST_URL: `http://127.0.0.1:${port}` };
      await withSpooledRedirect({ env, spool: disk.directory }, async (at) => {
        const answered = await fillUp(report, at);
        const writable = () => readMetric(at.service(), "linkfence_spool_writable");
        report.check("writable while the disk is full", await writable(), 0);
        await at.startIngest(port);
        const before = await settleClickAccount(at.service());
        const segments = () => readMetric(at.service(), "linkfence_spool_segments");
        await waitFor("room on the disk", async () => (await segments()) === 0);
        report.check("redirects when there is room again", await at.follow(STEP), { 302: STEP });
        const { inserted, dropped } = await settleClickAccount(at.service());
        report.check("written and stored again", [await writable(), inserted - before.inserted], [1, STEP]);
        const { rows, ids } = await countClicks(at.stats);
        const lost = Object.values(dropped).reduce((sum, count) => sum + count, 0);
        report.check("clicks counted twice", rows - ids, 0);
        report.check("rows + dropped = redirects", rows + lost, answered + STEP);
        report.figure(`${answered} redirects on a disk of 1 MiB: ${rows - STEP} stored, ${lost} dropped`);
      });
    }),
};

/** Follows links until clicks are dropped. Returns how many redirects were answered, which is all. */
async function fillUp(report: Report, at: SpooledRedirect): Promise<number> {
  let answered = 0;
  const isFull = async () => ((await readClickAccount(at.service())).dropped["spool-full"] ?? 0) > 0;
  while (!(await isFull())) {
    const statuses = await at.follow(STEP, USER_AGENT);
    answered += STEP;
    report.check("redirects", statuses, { 302: STEP });
    await waitFor("clicks in the spool or in memory", async () => (await waitingInRing(at)) === 0);
  }
  const { accepted, dropped, inFlight } = await readClickAccount(at.service());
  report.check("accepted", accepted, answered);
  const sum = Object.values(dropped).reduce((total, count) => total + count, inFlight);
  report.check("in flight + dropped = accepted", sum, accepted);
  return answered;
}

/** Clicks that have come nowhere yet. */
async function waitingInRing(at: SpooledRedirect): Promise<number> {
  return readMetric(at.service(), "linkfence_clicks_in_ring");
}

export const c3c: EvidenceCase = {
  id: "C3c",
  shows: "a redirect that writes its click to a file before it answers answers nobody any more when the disk is full",
  control: true,
  missing: mountAllowed,
  run: (report) =>
    closingAfterwards(async (later) => {
      const disk = await mountSmallDisk();
      later(disk.unmount);
      const server = createServer((_request, response) => {
        try {
          appendFileSync(join(disk.directory, "clicks"), `${USER_AGENT}${USER_AGENT}\n`);
          response.writeHead(302, { Location: "https://example.com/" }).end();
        } catch {
          response.writeHead(500).end();
        }
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      later(() => server.close());
      const http = createHttpClient();
      later(http.close);
      const statuses: Record<number, number> = {};
      for (let count = 0; count < (2 * DISK_BYTES) / 1024; count += 1) {
        const { status } = await http.send(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "/link1");
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      report.check("answers", Object.keys(statuses), ["302", "500"]);
    }),
};

const CLICKS = 12;

/** The file that a real process leaves when it is killed, without its header. */
async function realSegment(): Promise<Buffer> {
  let segment = Buffer.alloc(0);
  await withSpooledRedirect({}, async (at) => {
    await at.follow(CLICKS);
    await waitFor("clicks on disk", async () => (await readMetric(at.service(), "linkfence_clicks_at_risk")) === 0);
    await at.kill();
    const [name = ""] = (await readdir(at.spool)).filter((each) => each.endsWith(".spool"));
    segment = (await readFile(join(at.spool, name))).subarray(512);
  });
  return segment;
}

const texts = (payloads: readonly Buffer[]) => payloads.map((each) => each.toString("latin1"));

export const c4: EvidenceCase = {
  id: "C4",
  shows:
    "of a segment that is cut off at any byte every whole click is found, of one with any bit turned over every click but one, and never one that was not there",
  async run(report) {
    const segment = await realSegment();
    const all = texts(readFrames(segment, { last: true }).payloads);
    report.check("clicks", all.length, CLICKS);
    const ends = all.map((_, index) => encodeFrames(all.slice(0, index + 1)).length);
    let wrong = 0;
    for (let cut = 0; cut <= segment.length; cut += 1) {
      const whole = ends.filter((end) => end <= cut).length;
      const isTorn = cut > 0 && !ends.includes(cut);
      const { payloads, damaged } = readFrames(segment.subarray(0, cut), { last: true });
      if (payloads.length !== whole || damaged !== (isTorn ? 1 : 0)) wrong += 1;
    }
    report.check(`wrong of ${segment.length + 1} cuts`, wrong, 0);
    wrong = eachBit(segment, (hit, byte) => {
      const lost = ends.findIndex((end) => byte < end);
      const { payloads, damaged } = readFrames(hit, { last: true });
      return damaged === 1 && texts(payloads).join() === all.toSpliced(lost, 1).join();
    });
    report.check(`wrong of ${segment.length * 8} bits turned over`, wrong, 0);
    report.figure(`${segment.length + 1} cuts and ${segment.length * 8} bits of a segment with ${CLICKS} clicks`);
  },
};

/** Turns each bit over in turn. Returns how often `isRight` said no. */
function eachBit(segment: Buffer, isRight: (hit: Buffer, byte: number) => boolean): number {
  let wrong = 0;
  for (let bit = 0; bit < segment.length * 8; bit += 1) {
    const byte = bit >> 3;
    segment.writeUInt8(segment.readUInt8(byte) ^ (1 << (bit & 7)), byte);
    if (!isRight(segment, byte)) wrong += 1;
    segment.writeUInt8(segment.readUInt8(byte) ^ (1 << (bit & 7)), byte);
  }
  return wrong;
}

export const c4c: EvidenceCase = {
  id: "C4c",
  shows: "where lengths alone are believed, clicks that nobody made are found, or none at all",
  control: true,
  async run(report) {
    const segment = encodeFrames(['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']);
    const true_ = texts(splitFrames(segment));
    const outcomes = { right: 0, invented: 0, failed: 0 };
    eachBit(segment, (hit) => {
      try {
        const isRight = texts(splitFrames(hit)).every((each) => true_.includes(each));
        outcomes[isRight ? "right" : "invented"] += 1;
        return isRight;
      } catch {
        outcomes.failed += 1;
        return false;
      }
    });
    report.check("some were invented, some reads failed", [outcomes.invented > 0, outcomes.failed > 0], [true, true]);
    report.figure(
      `of ${segment.length * 8} bits ${outcomes.invented} invent a click, ${outcomes.failed} end the reading`,
    );
  },
};
