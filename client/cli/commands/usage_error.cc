// Includes models/ for its comparison of words, and server/ for what both programs say of a value.
#include "client/cli/commands/usage_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/api/text.h"
#include "server/core/flag_value.h"

namespace saccade::client {
namespace {

// The subcommand that was named, or the program.
const CLI::App& Named(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : *subcommands.front();
}

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(one->get_name());
  return commands;
}

std::string MeantText(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string meant = models::NearestWord(word, candidates);
  return meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?");
}

// An error's own name is the program's, for some of them.
bool Is(const CLI::Error& error, CLI::ExitCodes kind) {
  return error.get_exit_code() == static_cast<int>(kind);
}

// The name before the first colon or space of CLI11's text.
std::string FirstWord(absl::string_view text) {
  return std::string(text.substr(0, text.find_first_of(": ")));
}

std::string What(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& command = Named(app);
  const bool is_named = &command != &app;
  const std::string program =
      is_named ? absl::StrCat("saccade ", command.get_name()) : std::string("saccade");
  const auto left = command.remaining();
  // Behind a mistyped command all flags are unknown.
  if (!is_named && !left.empty() && !absl::StartsWith(left.front(), "-"))
    return absl::StrCat("'", left.front(), "' is no command of saccade",
                        MeantText(left.front(), CommandsOf(app)));
  // If a required flag is mistyped, CLI11 reports it as missing. Unknown flags are therefore reported first.
  for (const std::string& word : left) {
    if (!absl::StartsWith(word, "-") || word == "-") continue;
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat(flag, " is no flag of ", program, MeantText(flag, FlagsOf(command)));
  }
  if (Is(error, CLI::ExitCodes::ExtrasError) && !left.empty())
    return absl::StrCat(program, " takes no further argument, but got '", left.front(), "'");
  const std::string text = error.what();
  if (Is(error, CLI::ExitCodes::RequiredError)) return absl::StrCat(FirstWord(text), " is missing");
  if (Is(error, CLI::ExitCodes::ArgumentMismatch)) {
    const std::string name = FirstWord(text);
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option != nullptr && absl::StrContains(text, "missing"))
      return absl::StrCat(name, " needs a value: ", option->get_description());
  }
  return server::FlagValueText(text);
}

}  // namespace

std::string UsageErrorText(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& command = Named(app);
  return absl::StrCat("saccade: ", What(app, error), "; saccade ",
                      &command == &app ? "" : absl::StrCat(command.get_name(), " "), "--help lists ",
                      &command == &app ? "the commands\n" : "the flags\n");
}

}  // namespace saccade::client
