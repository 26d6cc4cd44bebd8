#include "server/inference/repository_orders.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/core/json_text.h"
#include "server/inference/inference.h"

namespace saccade::server {
namespace {

// As for a config.pbtxt.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

std::string Named(std::string_view name) {
  return absl::StrCat("parameter ", Shown({name.data(), name.size()}));
}

absl::Status Unknown(std::string_view name, absl::string_view known) {
  return Invalid(Named(name), absl::StrCat("is unknown; expected ", known));
}

}  // namespace

absl::string_view NameOf(ModelSnapshot::State state) {
  switch (state) {
    case ModelSnapshot::State::kLoading:
      return "LOADING";
    case ModelSnapshot::State::kReady:
      return "READY";
    case ModelSnapshot::State::kUnloading:
      return "UNLOADING";
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

std::vector<IndexEntry> IndexOf(const Catalog& catalog, bool ready_alone) {
  std::vector<IndexEntry> index = catalog.Index();
  for (IndexEntry& entry : index) {
    if (entry.state != ModelSnapshot::State::kReady) continue;
    const auto model = catalog.FindReady(entry.name, entry.version);
    if (!model.ok() || (*model)->ensemble() == nullptr) continue;
    const absl::Status runnable = CheckSteps(*(*model)->ensemble(), catalog);
    if (runnable.ok()) continue;
    entry.state = ModelSnapshot::State::kUnavailable;
    entry.reason = std::string(runnable.message());
  }
  const auto is_left_out = [ready_alone](const IndexEntry& entry) {
    return ready_alone && entry.state != ModelSnapshot::State::kReady;
  };
  index.erase(std::remove_if(index.begin(), index.end(), is_left_out), index.end());
  return index;
}

absl::StatusOr<std::optional<std::string>> LoadConfigOf(const NamedParameters& parameters) {
  std::optional<std::string> config;
  for (const auto& [name, value] : parameters) {
    if (name.substr(0, 5) == "file:") {
      return absl::UnimplementedError(
          absl::StrCat(Named(name), ": files are not accepted; put them into the model repository"));
    }
    if (name != "config") return Unknown(name, "config");
    const auto* text = std::get_if<std::string_view>(&value);
    if (text == nullptr || text->empty()) {
      return Invalid("parameter config", "expected the configuration as a string of JSON");
    }
    if (text->size() > kMaxConfigBytes) {
      return Invalid("parameter config", absl::StrCat("has ", text->size(), " bytes, more than the ",
                                                      kMaxConfigBytes, " that a configuration may have"));
    }
    if (const absl::Status values = CheckJsonValues(MaxJsonValuesIn({text->data(), text->size()}));
        !values.ok())
      return Invalid("parameter config", values.message());
    config = std::string(*text);
  }
  return config;
}

absl::StatusOr<bool> UnloadsDependents(const NamedParameters& parameters) {
  bool with_dependents = false;
  for (const auto& [name, value] : parameters) {
    if (name != "unload_dependents") return Unknown(name, "unload_dependents");
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return Invalid("parameter unload_dependents", "expected a boolean");
    with_dependents = *flag;
  }
  return with_dependents;
}

}  // namespace saccade::server
