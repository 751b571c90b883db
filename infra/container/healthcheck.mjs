// Asks the ops port of the process in this container whether it is ready; the image needs no curl for it.
const TIMEOUT_MS = 3000;

const url = `http://127.0.0.1:${process.env.OPS_PORT ?? "9090"}/readyz`;
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${body.slice(0, 200)}`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
