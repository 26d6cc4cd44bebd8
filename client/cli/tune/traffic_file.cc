#include "client/cli/tune/traffic_file.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace saccade::client {
namespace {

using server::simulation::Arrival;

constexpr double kMaxSeconds = 366.0 * 86400;
// Characters of a wrong line that an error repeats.
constexpr size_t kShown = 60;

absl::Status Wrong(int64_t line, absl::string_view text, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, " is '", text.substr(0, kShown), "'; expected ", expected));
}

}  // namespace

absl::StatusOr<std::vector<Arrival>> ParseTraffic(absl::string_view text,
                                                  const std::vector<std::string>& buckets) {
  std::vector<Arrival> arrivals;
  int64_t number = 0;
  double last = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t,"), absl::SkipEmpty());
    double seconds = 0;
    // The negation also rejects NaN.
    if (fields.empty() || fields.size() > 2 || !absl::SimpleAtod(fields[0], &seconds) ||
        !(seconds >= 0 && seconds <= kMaxSeconds))
      return Wrong(number, line, "SECONDS [BUCKET], with 0 or more seconds since the start of the recording");
    if (seconds < last) return Wrong(number, line, absl::StrCat("times in order: the one before is ", last));
    last = seconds;
    Arrival arrival = {.at = server::simulation::FromSeconds(seconds)};
    if (fields.size() == 2) {
      const auto found = std::find(buckets.begin(), buckets.end(), fields[1]);
      if (found == buckets.end())
        return Wrong(number, line,
                     absl::StrCat("a bucket that the daemon has measured: ", absl::StrJoin(buckets, ", ")));
      arrival.bucket = static_cast<int>(found - buckets.begin());
    }
    arrivals.push_back(arrival);
  }
  if (arrivals.size() < 2 || arrivals.front().at == arrivals.back().at)
    return absl::InvalidArgumentError(absl::StrCat("has ", arrivals.size(), " requests",
                                                   arrivals.size() < 2 ? "" : " at the same time",
                                                   "; expected two or more at different times"));
  return arrivals;
}

double RateOf(const std::vector<Arrival>& arrivals) {
  return static_cast<double>(arrivals.size() - 1) * 1e9 / (arrivals.back().at - arrivals.front().at).count();
}

}  // namespace saccade::client
