#include "server/metrics/exposition_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

// An entry of an Accept header: "text/plain; version=0.0.4; q=0.5".
struct MediaRange {
  absl::string_view type;
  // Empty if not given.
  absl::string_view version;
  // 0 if malformed.
  double weight = 1;
};

absl::string_view Unquoted(absl::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    return value.substr(1, value.size() - 2);
  return value;
}

MediaRange Read(absl::string_view text) {
  MediaRange range;
  bool first = true;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    part = absl::StripAsciiWhitespace(part);
    const size_t equals = part.find('=');
    if (first) {
      range.type = part;
    } else if (absl::StartsWithIgnoreCase(part, "version=")) {
      range.version = Unquoted(part.substr(equals + 1));
    } else if (absl::StartsWithIgnoreCase(part, "q=") &&
               (!absl::SimpleAtod(part.substr(equals + 1), &range.weight) || !(range.weight <= 1))) {
      range.weight = 0;
    }
    first = false;
  }
  return range;
}

// How specifically the range matches the supported text format; 0 if it does not match.
int MatchOfText(const MediaRange& range) {
  if (absl::EqualsIgnoreCase(range.type, "text/plain"))
    return range.version.empty() || range.version == "0.0.4" ? 3 : 0;
  if (absl::EqualsIgnoreCase(range.type, "text/*")) return 2;
  return range.type == "*/*" ? 1 : 0;
}

}  // namespace

ExpositionFormat AcceptedFormat(std::optional<absl::string_view> accept) {
  if (!accept) return ExpositionFormat::kText;
  double open_metrics = 0;
  double text = 0;
  int match = 0;
  for (const absl::string_view entry : absl::StrSplit(*accept, ',')) {
    const MediaRange range = Read(entry);
    if (absl::EqualsIgnoreCase(range.type, "application/openmetrics-text") &&
        (range.version.empty() || range.version == "1.0.0")) {
      open_metrics = std::max(open_metrics, range.weight);
    } else if (const int its = MatchOfText(range); its > 0 && its >= match) {
      text = its == match ? std::max(text, range.weight) : range.weight;
      match = its;
    }
  }
  return open_metrics > 0 && open_metrics >= text ? ExpositionFormat::kOpenMetrics : ExpositionFormat::kText;
}

absl::string_view ContentTypeOf(ExpositionFormat format) {
  if (format == ExpositionFormat::kOpenMetrics)
    return "application/openmetrics-text; version=1.0.0; charset=utf-8";
  return "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace saccade::server
