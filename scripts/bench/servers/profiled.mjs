// Loaded before a server that is profiled: SIGWINCH, which stops no service, begins a profile of its main thread, and another
// one ends it. `--cpu-prof` would do, but covers the start as well, and NODE_OPTIONS, by which a started service is told, does
// not take it.
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { isMainThread } from "node:worker_threads";

const { BENCH_PROFILE_DIR: directory, BENCH_PROFILE_US: interval } = process.env;
if (isMainThread && directory) {
  const session = new Session();
  session.connect();
  let profiles = 0;
  let going = false;
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: Number(interval) });
  process.on("SIGWINCH", () => {
    going = !going;
    if (going) return session.post("Profiler.start");
    session.post("Profiler.stop", (error, told) => {
      profiles += 1;
      writeFileSync(`${directory}/${profiles}.cpuprofile`, error ? "" : JSON.stringify(told.profile));
    });
  });
}
