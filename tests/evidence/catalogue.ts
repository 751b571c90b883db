import { realUrls } from "./real-urls.ts";
import type { EvidenceCase } from "./report.ts";

/** Every experiment, in the order in which they run. */
export const catalogue: readonly EvidenceCase[] = [realUrls];
