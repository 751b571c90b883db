-- Asks for the paths in a file, one after the other, and says what came of it as one line of JSON.
local requests, count, at = {}, 0, 0

function init(args)
  for path in io.lines(args[1]) do
    count = count + 1
    requests[count] = wrk.format("GET", path)
  end
end

-- Of one request wrk is told beforehand, so that it costs nothing.
function request()
  at = at % count + 1
  return requests[at]
end

-- This runs apart from the above, and sees nothing of it. wrk takes any answer from 400 on for an error: `refused`.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"answered":%d,"ms":%.3f,"failed":%d,"refused":%d,"p50":%.4f,"p99":%.4f}\n', summary.requests,
    summary.duration / 1000, errors.connect + errors.read + errors.write + errors.timeout, errors.status,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
