#include "client/cli/outcome.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/failure.h"
#include "client/cli/json.h"

namespace saccade::client {
namespace {

constexpr int kBarWidth = 24;

nlohmann::ordered_json Timing(const Timings& timings) {
  return {{"decode", Milliseconds(timings.decode)},
          {"queue", Milliseconds(timings.queue)},
          {"infer", Milliseconds(timings.infer)},
          {"total", Milliseconds(timings.total)},
          {"round_trip", Milliseconds(timings.round_trip)}};
}

nlohmann::ordered_json ToJson(const Outcome& outcome) {
  nlohmann::ordered_json json = {{"file", outcome.file}};
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    json["error"] = {{"code", outcome.unreadable ? "UNREADABLE_FILE" : CodeName(status.code())},
                     {"message", std::string(status.message())}};
    return json;
  }
  const Classification& answer = *outcome.answer;
  json["picture"] = {{"width", answer.picture_width}, {"height", answer.picture_height}};
  json["model_version"] = answer.version;
  json["classes"] = nlohmann::ordered_json::array();
  for (const ScoredClass& item : answer.classes) {
    json["classes"].push_back(
        {{"index", item.index}, {"label", item.label}, {"probability", Shortest(item.probability)}});
  }
  json["timings_ms"] = Timing(answer.timings);
  json["batch_size"] = answer.batch_size;
  if (!outcome.overlay.empty()) json["overlay"] = outcome.overlay;
  return json;
}

}  // namespace

int Outcome::ExitCode() const {
  if (unreadable) return kExitFailure;
  if (!answer.ok()) return ExitCodeOf(answer.status());
  return overlay_status.ok() ? kExitOk : kExitFailure;
}

std::string Bar(double fraction, int width, bool unicode) {
  // Written so that a NaN, which a broken model may answer, draws nothing.
  const double columns = fraction > 0 ? std::min(fraction, 1.0) * width : 0.0;
  if (!unicode) return std::string(std::lround(columns), '#');
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const long eighths = std::lround(columns * 8);
  std::string bar;
  for (long i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

void PrintText(Console& console, const Outcome& outcome) {
  const Classification& answer = *outcome.answer;
  console.out << Paint(console, Tone::kStrong, Printable(outcome.file))
              << Paint(console, Tone::kFaint,
                       Printable(absl::StrFormat("  %dx%d  %s %d  %.1f ms (infer %.1f, batch of %d)",
                                                 answer.picture_width, answer.picture_height, answer.model,
                                                 answer.version, Milliseconds(answer.timings.round_trip),
                                                 Milliseconds(answer.timings.infer), answer.batch_size)))
              << '\n';
  int64_t largest = 0;
  for (const ScoredClass& item : answer.classes) largest = std::max(largest, item.index);
  const int digits = static_cast<int>(absl::StrCat(largest).size());
  for (const ScoredClass& item : answer.classes) {
    const std::string bar = Bar(item.probability, kBarWidth, console.unicode);
    const int columns =
        static_cast<int>(std::count_if(bar.begin(), bar.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    console.out << absl::StrFormat("  %5.1f%%  ", 100 * item.probability) << Paint(console, Tone::kBar, bar)
                << std::string(kBarWidth - columns, ' ') << absl::StrFormat("  %*d", digits, item.index);
    if (!item.label.empty()) console.out << "  " << Printable(item.label);
    console.out << '\n';
  }
}

std::string ToJson(const std::string& model, const std::vector<Outcome>& outcomes) {
  nlohmann::ordered_json document = {{"version", 1}, {"model", model}};
  document["results"] = nlohmann::ordered_json::array();
  for (const Outcome& outcome : outcomes) document["results"].push_back(ToJson(outcome));
  return Dump(document);
}

}  // namespace saccade::client
