#include "server/lifecycle/flag_errors.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "models/api/text.h"
#include "server/core/flag_value.h"

namespace saccade::server {
namespace {

std::string UnknownText(const CLI::App& app, const std::string& word) {
  if (!absl::StartsWith(word, "-"))
    return absl::StrCat("'", word, "' is no flag; flags are written --flag=value or --flag value");
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const std::string meant = models::NearestWord(flag, flags);
  return absl::StrCat(flag, " is unknown", meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"));
}

// `text` is CLI11's, which has little more than the name, or that of the file's reader (flag_sources.cc).
std::string WrongLineText(const CLI::App& app, absl::string_view text) {
  const std::vector<std::string> files = app.get_config_ptr()->results();
  const std::string file = files.empty() ? "--config" : files.back();
  if (absl::ConsumePrefix(&text, "INI was not able to parse ")) {
    const bool has_dashes = absl::StartsWith(text, "-");
    return absl::StrCat(file, ": ", UnknownText(app, absl::StrCat(has_dashes ? "" : "--", text)));
  }
  if (absl::ConsumeSuffix(&text, ": This option is not allowed in a configuration file"))
    return absl::StrCat(file, ": --", text, " cannot be in this file; expected it on the command line");
  return absl::StrCat(file, ": ", text);
}

std::string What(const CLI::App& app, const CLI::Error& error) {
  const std::string text = error.what();
  if (const auto left = app.remaining(); !left.empty()) return UnknownText(app, left.front());
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ConfigError)) return WrongLineText(app, text);
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ArgumentMismatch) ||
      !absl::StrContains(text, "missing"))
    return FlagValueText(text);
  const std::string name = text.substr(0, text.find(':'));
  const CLI::Option* const option = app.get_option_no_throw(name);
  if (option == nullptr) return text;
  return absl::StrCat(name, " needs a value: ", option->get_description());
}

}  // namespace

std::string FlagErrorText(const CLI::App& app, const CLI::Error& error) {
  return absl::StrCat(What(app, error), "\nsaccaded --help lists the flags.\n");
}

}  // namespace saccade::server
