const CUT = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT"]);

/** Whether a request failed because its connection was refused or cut, or nothing came for long. */
export function isCut(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return CUT.has(code ?? "") || /^(socket hang up|no answer within)/.test(message ?? "");
}
