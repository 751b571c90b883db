// A start command of its own: started by tests that need one to kill. Reports in one line, stops at SIGTERM.
import { startLocalPostgres } from "./start.ts";

const options = JSON.parse(process.argv[2] ?? "{}");
try {
  const server = await startLocalPostgres(options);
  process.once("SIGTERM", () => void server.stop());
  console.log(JSON.stringify({ pid: server.pid, port: server.port }));
} catch (error) {
  const { code, message } = error as { code?: unknown; message?: unknown };
  console.log(JSON.stringify({ code, message }));
}
