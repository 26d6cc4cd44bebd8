#include "server/lifecycle/flag_table.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

void AppendName(std::string* out, const std::string& name) { absl::StrAppend(out, "--", name); }

std::string Names(const std::set<CLI::Option*>& options) {
  return absl::StrJoin(options, ",", [](std::string* out, const CLI::Option* option) {
    AppendName(out, option->get_lnames().front());
  });
}

}  // namespace

std::string FlagTable(const CLI::App& app) {
  std::string lines;
  for (const CLI::Option* option : app.get_options()) {
    // Hidden flags have no group.
    if (option->get_lnames().empty() || option->get_group().empty()) continue;
    // A flag without a value has a type all the same.
    const std::string type = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    absl::StrAppend(
        &lines,
        absl::StrJoin({absl::StrJoin(option->get_lnames(), ",", AppendName), type, option->get_default_str(),
                       Names(option->get_needs()), Names(option->get_excludes()), option->get_description()},
                      "\t"),
        "\n");
  }
  return lines;
}

}  // namespace saccade::server
