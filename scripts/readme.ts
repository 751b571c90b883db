// Writes the generated part of README.md anew.
import { readFile, writeFile } from "node:fs/promises";
import { allowOnlyHelp } from "./no-arguments.ts";
import { withSettings } from "./settings-table.ts";

allowOnlyHelp("readme", "Writes the generated parts of README.md anew.");
const README = new URL("../README.md", import.meta.url);
await writeFile(README, withSettings(await readFile(README, "utf8")));
