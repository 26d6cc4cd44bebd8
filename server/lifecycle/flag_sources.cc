#include "server/lifecycle/flag_sources.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <istream>
#include <memory>

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

// The file without the lines of flags that are set in the environment. CLI11 reads the environment only for
// flags that are in no file.
class FileBelowEnvironment : public CLI::ConfigTOML {
 public:
  explicit FileBelowEnvironment(const CLI::App* app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> lines = CLI::ConfigTOML::from_config(input);
    std::erase_if(lines, [this](const CLI::ConfigItem& item) {
      return item.parents.empty() && IsSetInEnvironment(app_->get_option_no_throw("--" + item.name));
    });
    return lines;
  }

 private:
  const CLI::App* const app_;
};

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
  app.config_formatter(std::make_shared<FileBelowEnvironment>(&app));
}

}  // namespace saccade::server
