// Writes the generated part of README.md anew.
import { readFile, writeFile } from "node:fs/promises";
import { withSettings } from "./settings-table.ts";

const README = new URL("../README.md", import.meta.url);
await writeFile(README, withSettings(await readFile(README, "utf8")));
