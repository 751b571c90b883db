// Clicks as parameters of `store_counted_clicks`: one array a column, as a literal. What the clicks of one request come to is
// made while they wait for the transaction before theirs, so that the database does not wait for it in turn.
import type { Click } from "@linkfence/contracts";
import { arrayLiteral } from "@linkfence/db";
import { classify } from "../domain/classify.ts";

export type Columns = Readonly<Record<ColumnName, string>>;
type ColumnName = (typeof NAMES)[number];
type Prepared = { clicks: readonly Click[]; columns: Columns };

const NAMES = [
  "ids",
  "versions",
  "times",
  "codes",
  "owners",
  "referrers",
  "browsers",
  "systems",
  "devices",
  "countries",
  "bots",
  "prefetches",
] as const;

/** By the first click of each list, and gone with it. */
const prepared = new WeakMap<Click, Prepared>();

/**
 * Makes ready what is needed of these clicks, which must not change from then on. Where others are asked for, or only some of
 * them, it is of no use and does no harm.
 */
export function prepareColumns(clicks: readonly Click[]): void {
  const [first] = clicks;
  if (first !== undefined) prepared.set(first, { clicks, columns: render(clicks) });
}

/** The clicks as arrays, one a column and as text. */
export function toColumns(clicks: readonly Click[]): Columns {
  const parts = [...partsOf(clicks)];
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const join = (name: ColumnName) => `{${parts.map((part) => part[name].slice(1, -1)).join()}}`;
  return Object.fromEntries(NAMES.map((name) => [name, join(name)])) as Columns;
}

/** Of each stretch of the clicks, what was prepared of it or is made now. */
function* partsOf(clicks: readonly Click[]): Generator<Columns> {
  let rest: Click[] = [];
  for (let place = 0; place < clicks.length; ) {
    const click = clicks[place] as Click;
    const ready = prepared.get(click);
    if (ready?.clicks.every((each, n) => each === clicks[place + n])) {
      if (rest.length > 0) yield render(rest);
      rest = [];
      yield ready.columns;
      place += ready.clicks.length;
    } else {
      rest.push(click);
      place += 1;
    }
  }
  if (rest.length > 0) yield render(rest);
}

function render(clicks: readonly Click[]): Columns {
  const classes = clicks.map(classify);
  return {
    ids: arrayLiteral(clicks.map(({ id }) => id)),
    versions: arrayLiteral(clicks.map(({ version }) => version)),
    times: arrayLiteral(clicks.map(({ at }) => at)),
    codes: arrayLiteral(clicks.map(({ code }) => code)),
    owners: arrayLiteral(clicks.map(({ owner }) => owner ?? null)),
    referrers: arrayLiteral(clicks.map(({ referrerHost }) => referrerHost ?? "")),
    browsers: arrayLiteral(classes.map(({ browser }) => browser)),
    systems: arrayLiteral(classes.map(({ os }) => os)),
    devices: arrayLiteral(classes.map(({ device }) => device)),
    countries: arrayLiteral(clicks.map(({ country }) => country ?? "")),
    bots: arrayLiteral(classes.map(({ bot }) => String(bot))),
    prefetches: arrayLiteral(clicks.map(({ prefetch }) => String(prefetch ?? false))),
  };
}
