// Which targets are taken, as what, and which are refused: by the rule alone, through the API, and through its batches.
import { mapConcurrently } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "../../services/write/src/api-world.fixture.ts";
import { decideTarget, type TargetRules } from "../../services/write/src/domain/target.ts";
import { KEPT, PRIVATE, REFUSED, RESPELLED, RULES } from "../../services/write/src/domain/target-table.fixture.ts";
import type { EvidenceCase, Report } from "./report.ts";

/** Requests under way at once. */
const WIDTH = 8;

/** What is said about one target: the URL that it is stored as, or the rule that it breaks. */
type Verdict = { stored: string } | { refusedBy: string };
/** A target, and what has to be said about it. */
type Row = { text: string; verdict: Verdict };
type Fault = { field: string; rule: string };
type Refusal = { status: number; code: string; errors: Fault[] };
type BatchItem = { status: number; link?: { code: string }; problem?: Refusal };

export const v1: EvidenceCase = {
  id: "V1",
  shows:
    "a target is stored in its canonical form, or refused with the rule that it breaks and nothing written: the rule alone, the API and its batches agree on each",
  async run(report) {
    const accepted = [...RESPELLED, ...KEPT.map((text) => [text, text] as const)];
    const privateUrls = PRIVATE.map((host) => `http://${host}/`);
    await inWorld(report, RULES, async (judge) => {
      await judge("differ from their canonical form by spelling alone", RESPELLED.map(storedAs));
      await judge("are in their canonical form", KEPT.map((text) => [text, text] as const).map(storedAs));
      for (const [rule, texts] of REFUSED) await judge(`break the rule ${rule}`, texts.map(refusedBy(rule)));
      await judge(
        "lead to private hosts, which are allowed",
        privateUrls.map((url) => [url, url] as const).map(storedAs),
      );
    });
    await inWorld(report, { ...RULES, privateHosts: "deny" }, (judge) =>
      judge("lead to private hosts, which are denied", privateUrls.map(refusedBy("private-host"))),
    );
    const refused = REFUSED.reduce((sum, [, texts]) => sum + texts.length, 0);
    report.figure(`${accepted.length} accepted, ${refused} refused by ${REFUSED.length} rules`);
  },
};

const storedAs = ([text, stored]: readonly [string, string]): Row => ({ text, verdict: { stored } });
const refusedBy =
  (rule: string) =>
  (text: string): Row => ({ text, verdict: { refusedBy: rule } });

type Judge = (what: string, rows: readonly Row[]) => Promise<void>;

/** Runs `use` on a write service of its own with those rules. */
async function inWorld(report: Report, rules: TargetRules, use: (judge: Judge) => Promise<void>): Promise<void> {
  const world = await startApiWorld({ TARGET_PRIVATE_HOSTS: rules.privateHosts });
  try {
    await use((what, rows) => judgeRows(report, { world, rules }, { what, rows }));
  } finally {
    await world.stop();
  }
}

/** Asks all three about each row. One that is accepted is written by the API and by the batch, one that is refused never. */
async function judgeRows(
  report: Report,
  { world, rules }: { world: ApiWorld; rules: TargetRules },
  { what, rows }: { what: string; rows: readonly Row[] },
): Promise<void> {
  const texts = rows.map(({ text }) => text);
  const before = (await world.linkCount()) ?? Number.NaN;
  const said = {
    rule: texts.map((text) => ofRule(text, rules)),
    api: await mapConcurrently(texts, WIDTH, (text) => ofApi(world, text)),
    batch: await ofBatch(world, texts),
  };
  const wrong = Object.entries(said).flatMap(([by, verdicts]) =>
    rows.flatMap(({ text, verdict }, index) => {
      const actual = verdicts[index];
      return JSON.stringify(actual) === JSON.stringify(verdict) ? [] : [{ by, text, said: actual, expected: verdict }];
    }),
  );
  report.check(`${rows.length} that ${what}: judged otherwise`, wrong, []);
  const written = rows.filter(({ verdict }) => "stored" in verdict).length * 2;
  report.check(`${rows.length} that ${what}: rows written`, ((await world.linkCount()) ?? 0) - before, written);
}

function ofRule(text: string, rules: TargetRules): Verdict {
  const decision = decideTarget(text, rules);
  return decision.ok ? { stored: decision.href } : { refusedBy: decision.rule };
}

async function ofApi(world: ApiWorld, target: string): Promise<unknown> {
  const { status, json } = await world.create({ target });
  return status === 201 ? ofStored(world, String(json.code)) : ofRefusal(json as Refusal, "target");
}

async function ofBatch(world: ApiWorld, texts: readonly string[]): Promise<unknown[]> {
  const links = texts.map((target) => ({ target }));
  const { json } = await world.api<{ results: BatchItem[] }>("POST", "/v1/links:batch", { links });
  return Promise.all(
    json.results.map(({ link, problem }, index) =>
      link ? ofStored(world, link.code) : ofRefusal(problem, `links[${index}].target`),
    ),
  );
}

/** What the database holds, whatever the answer said. */
async function ofStored(world: ApiWorld, code: string): Promise<unknown> {
  const [stored] = await world.rowsOf(code);
  return { stored };
}

/** The rule that is named, when the refusal is the right one and names the field; else the refusal itself. */
function ofRefusal(refusal: Refusal | undefined, field: string): unknown {
  const [fault] = refusal?.errors ?? [];
  const isRight = refusal?.status === 422 && refusal.code === "invalid-target" && fault?.field === field;
  return isRight ? { refusedBy: fault.rule } : refusal;
}
