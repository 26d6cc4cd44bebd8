#include "server/lifecycle/flag_table.h"

#include <CLI/CLI.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/flag_value.h"

namespace saccade::server {
namespace {

void AppendName(std::string* out, const std::string& name) { absl::StrAppend(out, "--", name); }

std::string Names(const std::set<CLI::Option*>& options) {
  return absl::StrJoin(options, ",", [](std::string* out, const CLI::Option* option) {
    AppendName(out, option->get_lnames().front());
  });
}

// The error for -1 as the flag's value, or that there is none; empty if the flag takes no numbers.
std::string ErrorForMinusOne(CLI::Option* option) {
  static const auto* const kNumbers = new std::set<std::string>{"N", "S", "MS", "PORT", "R", "BYTES"};
  // CLI11 adds the validator's name after a colon.
  const std::string type = option->get_type_name();
  if (kNumbers->count(type.substr(0, type.find(':'))) == 0) return "";
  try {
    option->clear();
    option->add_result("-1");
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    return FlagValueText(error.what());
  }
  return "-1 is accepted";
}

}  // namespace

std::string FlagTable(CLI::App& app) {
  std::string lines;
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    // Hidden flags have no group.
    if (option->get_lnames().empty() || option->get_group().empty()) continue;
    // A flag without a value has a type all the same.
    const std::string type = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    absl::StrAppend(
        &lines,
        absl::StrJoin({absl::StrJoin(option->get_lnames(), ",", AppendName), type, option->get_default_str(),
                       Names(option->get_needs()), Names(option->get_excludes()), option->get_description(),
                       ErrorForMinusOne(option)},
                      "\t"),
        "\n");
  }
  return lines;
}

}  // namespace saccade::server
