// Files of which no duration is known go by what they need: those that run whole products first, so that none of them is
// left alone with one worker at the end. Jest's own rule, the size of the file, puts the shortest texts last, and those are
// the longest experiments.
import Sequencer from "@jest/test-sequencer";

const RANKS = [
  /\/tests\/((evidence|e2e|failure)\/.*\.(failure|e2e)\.|simulation\/)/,
  /\.failure\./,
  /\.e2e\./,
  /\.pg\./,
];
const rank = ({ path }) => {
  const found = RANKS.findIndex((pattern) => pattern.test(path));
  return found < 0 ? RANKS.length : found;
};

export default class LongFirst extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    if (sorted.some(({ duration }) => duration !== undefined)) return sorted;
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
