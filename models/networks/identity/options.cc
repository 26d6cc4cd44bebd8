#include "models/networks/identity/options.h"

#include <cmath>
#include <string>

#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

std::chrono::nanoseconds Milliseconds(double count) {
  return std::chrono::nanoseconds(std::llround(count * 1e6));
}

std::string AsText(const std::optional<float>& trigger) { return trigger ? NumberText(*trigger) : "none"; }

}  // namespace

std::chrono::nanoseconds IdentityOptions::Delay(int64_t items) const {
  return Milliseconds(delay_ms + delay_ms_per_item * static_cast<double>(items));
}

std::chrono::nanoseconds IdentityOptions::MaxHang() const { return Milliseconds(1e3 * hang_seconds); }

std::vector<std::string> IdentityOptions::Drills() const {
  std::vector<std::string> drills;
  if (fail_at) drills.emplace_back("fail_at");
  if (hang_at) drills.emplace_back("hang_at");
  if (lose_device_at) drills.emplace_back("lose_device_at");
  if (no_room_above > 0) drills.emplace_back("no_room_above");
  if (!broken_thread_file.empty()) drills.emplace_back("broken_thread_file");
  return drills;
}

IdentityOptions ParseIdentityOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  IdentityOptions parsed;
  parsed.delay_ms = reader.Number("delay_ms", parsed.delay_ms, 0, 60000);
  parsed.delay_ms_per_item = reader.Number("delay_ms_per_item", parsed.delay_ms_per_item, 0, 60000);
  parsed.busy = reader.Choice("delay", "sleep", {"sleep", "busy"}) == "busy";
  // 0 is not legal: warm-up items are all zeros, so the warm-up would fail or hang.
  parsed.fail_at = reader.NonZero("fail_at");
  parsed.hang_at = reader.NonZero("hang_at");
  parsed.lose_device_at = reader.NonZero("lose_device_at");
  parsed.no_room_above = reader.Integer("no_room_above", parsed.no_room_above, 0, 1000);
  parsed.hang_seconds = reader.Number("hang_seconds", parsed.hang_seconds, 0, 86400);
  parsed.hang_file = reader.Text("hang_file", "", "the path of a file");
  parsed.broken_thread_file = reader.Text("broken_thread_file", "", "the path of a file");
  parsed.max_voxels = reader.Integer("max_voxels", parsed.max_voxels, 1, int64_t{1} << 31);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const IdentityOptions& options) {
  return {{"delay_ms", NumberText(options.delay_ms)},
          {"delay_ms_per_item", NumberText(options.delay_ms_per_item)},
          {"delay", options.busy ? "busy" : "sleep"},
          {"fail_at", AsText(options.fail_at)},
          {"hang_at", AsText(options.hang_at)},
          {"lose_device_at", AsText(options.lose_device_at)},
          {"no_room_above", std::to_string(options.no_room_above)},
          {"broken_thread_file", options.broken_thread_file},
          {"hang_seconds", NumberText(options.hang_seconds)},
          {"hang_file", options.hang_file},
          {"max_voxels", std::to_string(options.max_voxels)}};
}

}  // namespace saccade::models
