-- Asks for the paths in a file, one after the other, and says what came of it as one line of JSON.
local requests, count, at = {}, 0, 0
-- wrk takes any answer from 400 on for a failure, also where such pages are what is asked for.
local pages = false

function init(args)
  pages = args[2] == "pages"
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

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"answered":%d,"ms":%.3f,"failed":%d,"p50":%.4f,"p99":%.4f}\n', summary.requests,
    summary.duration / 1000, errors.connect + errors.read + errors.write + errors.timeout + (pages and 0 or errors.status),
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
