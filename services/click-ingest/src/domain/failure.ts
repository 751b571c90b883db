/**
 * - `transient`: not the clicks' fault. They are kept and stored later.
 * - `poison`: the database refused the data. Repeating cannot help; leaving out the bad click can.
 */
export type Failure = "transient" | "poison";

/**
 * Classes of SQLSTATE (PostgreSQL manual, appendix A) that judge the data: 21 cardinality, 22 data exception, 23 integrity
 * constraint, 44 check option, 54 program limit (a row too wide for its index), P0 an exception raised by a trigger.
 */
export const DATA_CLASSES = new Set(["21", "22", "23", "44", "54", "P0"]);
const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * Says whose fault a failed INSERT is. What is not known to judge the data is transient: a missing table or privilege, a
 * broken certificate or a connection that died fails for every click alike, and none of them may be refused for it.
 * @param code SQLSTATE, or the driver's or the system's code, or an empty text
 */
export function judgeFailure(code: string): Failure {
  return SQLSTATE.test(code) && DATA_CLASSES.has(code.slice(0, 2)) ? "poison" : "transient";
}
