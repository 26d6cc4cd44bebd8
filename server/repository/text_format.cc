#include "server/repository/text_format.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/repository/config_check.h"

namespace saccade::server {
namespace {

namespace pb = google::protobuf;

// Maximum length of a message from protobuf in an error; such messages quote whole names and numbers.
constexpr size_t kMaxShown = 256;

// Escapes a message of protobuf, without its quotes and line breaks, which protobuf uses itself.
std::string Cut(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text.substr(0, kMaxShown), '\n'))
    lines.push_back(absl::StrReplaceAll(absl::CHexEscape(line), {{"\\\"", "\""}, {"\\'", "'"}}));
  return absl::StrCat(absl::StrJoin(lines, "\n"), text.size() > kMaxShown ? "..." : "");
}

// Turns "Message type "inference.X" has no field named "y"." into advice; only truncates other messages.
std::string Advise(const std::string& message) {
  if (!absl::StrContains(message, "has no field named")) return Cut(message);
  const std::vector<std::string> quoted = absl::StrSplit(message, '"');
  if (quoted.size() < 4) return Cut(message);
  std::string known;
  const pb::Descriptor* type = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(quoted[1]);
  for (int i = 0; type != nullptr && i < type->field_count(); ++i) {
    absl::StrAppend(&known, i > 0 ? ", " : "", type->field(i)->name());
  }
  return absl::StrCat("field ", Quoted(quoted[3]), " is unknown; remove it (known fields: ", known, ")");
}

// Keeps the first error, with the line in which it occurred.
class FirstError final : public pb::io::ErrorCollector {
 public:
  FirstError(const std::string& text, absl::string_view shown) : text_(text), shown_(shown) {}

  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!status_.ok()) return;
    const std::vector<absl::string_view> lines = absl::StrSplit(text_, '\n');
    std::string excerpt;
    if (line >= 0 && static_cast<size_t>(line) < lines.size()) {
      const absl::string_view stripped = absl::StripAsciiWhitespace(lines[static_cast<size_t>(line)]);
      excerpt = absl::StrCat(" in '", absl::CHexEscape(stripped.substr(0, 120)), "'");
    }
    status_ = absl::InvalidArgumentError(
        absl::StrCat(shown_, ":", line + 1, ":", column + 1, ": ", Advise(message), excerpt));
  }

  const absl::Status& status() const { return status_; }

 private:
  const std::string& text_;
  const absl::string_view shown_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<ParsedConfig> ParseTextFormat(const std::string& text, absl::string_view shown) {
  FirstError error(text, shown);
  pb::TextFormat::ParseInfoTree locations;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&locations);
  // The schema has at most eight levels.
  parser.SetRecursionLimit(16);
  ParsedConfig parsed;
  if (!parser.ParseFromString(text, &parsed.message)) {
    if (!error.status().ok()) return error.status();
    return absl::InvalidArgumentError(absl::StrCat(shown, ": is not in protobuf's text format"));
  }
  parsed.lines = ConfigLines(parsed.message, locations);
  return parsed;
}

absl::StatusOr<ParsedConfig> ParseJson(const std::string& text, absl::string_view shown) {
  ParsedConfig parsed;
  const auto read = pb::util::JsonStringToMessage(text, &parsed.message);
  if (read.ok()) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat(shown, ": is not a model configuration in JSON: ",
                   Cut(absl::string_view(read.message().data(), read.message().size()))));
}

}  // namespace saccade::server
