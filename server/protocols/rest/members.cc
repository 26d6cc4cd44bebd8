#include "server/protocols/rest/members.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/core/json_text.h"

namespace saccade::server {
namespace {

using Json = nlohmann::json;

// Above the number of all settings, and small enough for memory.
constexpr size_t kMaxMembers = 256;
// A model's configuration, which may have 1 MiB, is the largest setting. As text it may be longer.
constexpr size_t kMaxSettingsBytes = size_t{4} << 20;

// Receives the parser's events in the order of the text. Each callback returns whether to continue. Keeps
// members at a nesting depth of `level` objects: of the object itself without its member `nested`, or only of
// its member `nested`.
class Members {
 public:
  Members(size_t level, absl::string_view nested) : level_(level), nested_(nested) {}

  bool null() { return Add("null", std::nullopt); }
  bool boolean(bool value) { return Add("true or false", value); }
  bool number_integer(Json::number_integer_t value) { return Add("a number", int64_t{value}); }
  bool number_unsigned(Json::number_unsigned_t value) { return Add("a number", uint64_t{value}); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) {
    return Add("a number", value);
  }
  bool string(std::string& value) { return Add("a string", std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return Fail(absl::InternalError("JSON has no binary values")); }

  bool start_object(size_t /*size*/) {
    if (!Count()) return false;
    if (skipped_ > 0 || IsPassedOver()) return ++skipped_ > 0;
    if (depth_ == level_) return Wrong("an object");
    ++depth_;
    return true;
  }
  bool end_object() { return End(); }
  bool start_array(size_t /*size*/) {
    if (!Count()) return false;
    if (skipped_ > 0 || IsPassedOver()) return ++skipped_ > 0;
    return Wrong("an array");
  }
  bool end_array() { return End(); }
  bool key(std::string& name) {
    if (!Count()) return false;
    if (skipped_ == 0) key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/, const Json::exception& error) {
    // Removes the library's own prefix.
    absl::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("the request is not valid JSON at byte ", position, ": ", Shown(what))));
  }

  const absl::Status& status() const { return status_; }
  RestParameters Take() { return std::move(members_); }

 private:
  bool IsPassedOver() const {
    if (depth_ != 1) return false;
    return level_ == 2 ? key_ != nested_ : !nested_.empty() && key_ == nested_;
  }

  // Counts a value or name, also one that is ignored.
  bool Count() {
    if (++values_ <= kMaxJsonValues) return true;
    return Fail(
        absl::InvalidArgumentError(absl::StrCat("the request has more than ", kMaxJsonValues,
                                                " values and names; send only what the protocol names")));
  }

  bool End() {
    --(skipped_ > 0 ? skipped_ : depth_);
    return true;
  }

  bool Fail(absl::Status why) {
    if (status_.ok()) status_ = std::move(why);
    return false;
  }

  bool Wrong(absl::string_view got) {
    if (depth_ == 0) return Fail(Invalid("request", absl::StrCat("expected an object, got ", got)));
    const absl::string_view expected = depth_ < level_ ? "an object" : "a string, a number, true or false";
    return Fail(Invalid(Shown(key_), absl::StrCat("expected ", expected, ", got ", got)));
  }

  bool Add(absl::string_view kind, std::optional<RestValue> value) {
    if (!Count()) return false;
    if (skipped_ > 0 || IsPassedOver()) return true;
    if (depth_ < level_ || !value) return Wrong(kind);
    if (members_.size() >= kMaxMembers) {
      return Fail(Invalid("request", absl::StrCat("has more than ", kMaxMembers, " members")));
    }
    members_.emplace_back(key_, *std::move(value));
    return true;
  }

  const size_t level_;
  const absl::string_view nested_;
  // The number of open objects, and of open objects and arrays that are ignored.
  size_t depth_ = 0;
  size_t skipped_ = 0;
  // The number of all values and names.
  size_t values_ = 0;
  std::string key_;
  RestParameters members_;
  absl::Status status_;
};

absl::StatusOr<RestParameters> Parse(absl::string_view text, size_t level, absl::string_view nested) {
  if (text.empty()) return RestParameters();
  if (text.size() > kMaxSettingsBytes) {
    return Invalid("request", absl::StrCat("has ", text.size(), " bytes, more than the ", kMaxSettingsBytes,
                                           " that are allowed here; send settings only"));
  }
  Members members(level, nested);
  Json::sax_parse(text.begin(), text.end(), &members);
  if (!members.status().ok()) return members.status();
  return members.Take();
}

}  // namespace

absl::StatusOr<RestParameters> ParseMembers(absl::string_view text, absl::string_view ignored) {
  return Parse(text, 1, ignored);
}

absl::StatusOr<RestParameters> ParseMembersOf(absl::string_view name, absl::string_view text) {
  return Parse(text, 2, name);
}

absl::StatusOr<RestParameters> ParseParameters(absl::string_view text) {
  return ParseMembersOf("parameters", text);
}

NamedParameters Named(const RestParameters& members) {
  NamedParameters named;
  for (const auto& [name, value] : members) named.emplace_back(name, ToParameter(value));
  return named;
}

}  // namespace saccade::server
