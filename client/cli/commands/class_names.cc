#include "client/cli/commands/class_names.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/connect.h"
#include "client/cli/output/failure.h"

namespace saccade::client {

int FindClasses(const FindCommand& command, Console& console, std::vector<int64_t>& indices) {
  std::vector<std::string> labels;
  for (const std::string& name : command.classes) {
    int64_t index = 0;
    if (absl::SimpleAtoi(name, &index)) {
      indices.push_back(index);
      continue;
    }
    if (labels.empty()) {
      const auto client = ConnectOrComplain(console, command.connection);
      if (client == nullptr) return kExitUsage;
      auto model = client->GetModel(command.model, command.version);
      if (!model.ok()) return ComplainOf(console, command.connection, model.status());
      labels = std::move(model->labels);
    }
    const auto found = std::find(labels.begin(), labels.end(), name);
    if (found == labels.end()) {
      Complain(console, absl::StrCat("--class ", name, ": ",
                                     labels.empty() ? absl::StrCat("model '", command.model,
                                                                   "' has no class names; give an index")
                                                    : absl::StrCat("no class of model '", command.model,
                                                                   "' has this name; saccade models --json "
                                                                   "lists their names")));
      return kExitUsage;
    }
    indices.push_back(found - labels.begin());
  }
  return kExitOk;
}

}  // namespace saccade::client
