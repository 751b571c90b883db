import { groups } from "./catalogue.ts";
import { prove } from "./prove.ts";

await prove(groups["exported-files"]);
