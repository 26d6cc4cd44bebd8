#include "server/lifecycle/flag_sources.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <istream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace saccade::server {
namespace {

bool IsSetInEnvironment(const CLI::Option* flag) {
  // CLI11 ignores empty variables.
  const char* const value = flag == nullptr ? nullptr : std::getenv(flag->get_envname().c_str());
  return value != nullptr && *value != '\0';
}

std::string Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const bool is_quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return std::string(is_quoted ? text.substr(1, text.size() - 2) : text);
}

// Reads the file without the lines of flags that are set in the environment. CLI11 reads the environment only
// for flags that are in no file. CLI11's own reader is not used: it splits values at commas and spaces, ends
// them at '#', and takes the first of two lines of a flag unless they are neighbours.
class FileBelowEnvironment : public CLI::ConfigTOML {
 public:
  explicit FileBelowEnvironment(const CLI::App* app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> found;
    for (std::string text; std::getline(input, text);) {
      const absl::string_view line = absl::StripAsciiWhitespace(text);
      if (line.empty() || line.front() == '#' || line.front() == ';') continue;
      if (line.front() == '[') {
        throw CLI::ConfigError(absl::StrCat(
            "the line '", line, "': sections are not supported; expected one name=value per line"));
      }
      const size_t equals = line.find('=');
      const bool has_value = equals != absl::string_view::npos;
      CLI::ConfigItem item;
      item.name = Unquoted(line.substr(0, equals));
      item.inputs = {has_value ? Unquoted(line.substr(equals + 1)) : "true"};
      if (!IsSetInEnvironment(Find(item.name))) Add(std::move(item), &found);
    }
    return found;
  }

 private:
  // Null if there is no such flag.
  const CLI::Option* Find(const std::string& name) const {
    const CLI::Option* const flag = app_->get_option_no_throw("--" + name);
    return flag != nullptr ? flag : app_->get_option_no_throw(name);
  }

  // As on the command line, a flag of one value has its last one, and others have all.
  void Add(CLI::ConfigItem item, std::vector<CLI::ConfigItem>* found) const {
    const CLI::Option* const flag = Find(item.name);
    const auto earlier = std::find_if(found->begin(), found->end(), [&](const CLI::ConfigItem& other) {
      return flag != nullptr && Find(other.name) == flag;
    });
    if (earlier == found->end()) {
      found->push_back(std::move(item));
    } else if (flag->get_expected_max() <= 1) {
      *earlier = std::move(item);
    } else {
      earlier->inputs.push_back(std::move(item.inputs.front()));
    }
  }

  const CLI::App* const app_;
};

// A pipe would be empty when the program has executed itself again (environment.h).
std::string CheckFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error)) return "";
  return absl::StrCat("'", path, "' is not a regular file; expected a file with one name=value per line");
}

}  // namespace

std::vector<std::string> SplitWords(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const bool has_empty_value =
        word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1;
    words.emplace_back(has_empty_value ? word.substr(0, word.size() - 1) : word);
    if (has_empty_value) words.emplace_back();
  }
  std::reverse(words.begin(), words.end());
  return words;
}

void SetFlagSources(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "version") continue;
    // Like Triton, the last of several values counts.
    if (option->get_expected_max() <= 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    option->envname(
        absl::StrCat("SACCADED_", absl::AsciiStrToUpper(absl::StrReplaceAll(names[0], {{"-", "_"}}))));
  }
  if (app.get_config_ptr() != nullptr) app.get_config_ptr()->check(CLI::Validator(CheckFile, ""));
  app.config_formatter(std::make_shared<FileBelowEnvironment>(&app));
}

}  // namespace saccade::server
