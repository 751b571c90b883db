import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { catalogue } from "./catalogue.ts";
import { mutations } from "./mutations.ts";

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");

test.each(mutations.map((mutation) => [mutation.name, mutation] as const))(
  "the mutation %s still fits the product, and names experiments that there are",
  (_name, { edits, cases }) => {
    for (const { file, find, replace } of edits) {
      expect(read(file).split(find)).toHaveLength(2);
      expect(replace).not.toBe(find);
    }
    const ids = new Map(catalogue.map(({ id, control }) => [id, control ?? false]));
    expect(cases.map((id) => [id, ids.get(id)])).toEqual(cases.map((id) => [id, false]));
  },
);
