#include "server/protocols/rest/query.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/api/text.h"
#include "server/core/errors.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// The fields of a PredictRequest that do not depend on the task. The model is in the path.
constexpr const char* kCommon[] = {"version", "version_label", "request_id", "priority",
                                   "region",  "tiles",         "explain"};

// What numbers consist of. The functions that convert them also take spaces, a leading '+' and hexadecimal
// digits.
constexpr absl::string_view kOfIntegers = "0123456789-";
constexpr absl::string_view kOfNumbers = "0123456789-+.eE";

// Every parameter of a query is compared with the names of all fields.
constexpr int kMaxQueryParameters = 256;

// Those that are no element of a list. No request has half as many.
constexpr size_t kMaxSingleParameters = 64;

std::optional<std::string> Decoded(absl::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
      continue;
    }
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const auto is_digit = [&](size_t at) {
      return at < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (!is_digit(i + 1) || !is_digit(i + 2)) return std::nullopt;
    const auto digit = [&](size_t at) {
      const auto c = static_cast<unsigned char>(text[at]);
      return c <= '9' ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
    };
    decoded += static_cast<char>(16 * digit(i + 1) + digit(i + 2));
    i += 2;
  }
  return decoded;
}

bool IsNamed(const FieldDescriptor& field, absl::string_view name) {
  return field.name() == name || field.json_name() == name;
}

void AppendLeaves(const FieldDescriptor& field, const std::string& before,
                  std::vector<KnownParameter>& leaves) {
  const std::string name = absl::StrCat(before, field.name());
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    leaves.push_back({name, &field});
    return;
  }
  // A query has no place for a list of messages.
  if (field.is_repeated()) return;
  for (int i = 0; i < field.message_type()->field_count(); ++i) {
    AppendLeaves(*field.message_type()->field(i), absl::StrCat(name, "."), leaves);
  }
}

const std::vector<const FieldDescriptor*>& CommonFields() {
  static const auto* const fields = [] {
    auto* const made = new std::vector<const FieldDescriptor*>;
    for (const char* name : kCommon) made->push_back(v1::PredictRequest::descriptor()->FindFieldByName(name));
    return made;
  }();
  return *fields;
}

// The field with the options of `task`; null if it has none.
const FieldDescriptor* OptionsField(models::Task task) {
  const bool map = task == models::Task::kStereo || task == models::Task::kDepth;
  const std::string name = map ? "stereo_options" : std::string(models::TaskName(task));
  const FieldDescriptor* field = v1::PredictRequest::descriptor()->FindFieldByName(name);
  return field != nullptr && field->containing_oneof() != nullptr ? field : nullptr;
}

// The names of an enumeration without the one that stands for none.
std::string NamesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(type.value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

// Sets the field, or adds to it if it is a list. Returns an empty string, for Put().
template <typename Value, typename Setter, typename Adder>
std::string Store(google::protobuf::Message& message, const FieldDescriptor& field, const Value& value,
                  Setter set, Adder add) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    (reflection.*add)(&message, &field, value);
  } else {
    (reflection.*set)(&message, &field, value);
  }
  return "";
}

bool ConsistsOf(absl::string_view text, absl::string_view characters) {
  return text.find_first_not_of(characters) == absl::string_view::npos;
}

template <typename Integer, typename Setter, typename Adder>
std::string PutInteger(const std::string& text, const FieldDescriptor& field,
                       google::protobuf::Message& message, Setter set, Adder add) {
  Integer value = 0;
  if (!ConsistsOf(text, kOfIntegers) || !absl::SimpleAtoi(text, &value))
    return absl::StrCat("an integer of ", 8 * sizeof(Integer), " bits");
  return Store(message, field, value, set, add);
}

// Puts `text` into the field. Returns what was expected if it is not a value of the field's type.
std::string Put(const std::string& text, const FieldDescriptor& field, google::protobuf::Message& message) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return PutInteger<int32_t>(text, field, message, &Reflection::SetInt32, &Reflection::AddInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return PutInteger<int64_t>(text, field, message, &Reflection::SetInt64, &Reflection::AddInt64);
    case FieldDescriptor::CPPTYPE_FLOAT: {
      float value = 0;
      const bool is_decimal = ConsistsOf(text, kOfNumbers) && !absl::StartsWith(text, "+");
      if (!is_decimal || !absl::SimpleAtof(text, &value) || !std::isfinite(value)) return "a number";
      return Store(message, field, value, &Reflection::SetFloat, &Reflection::AddFloat);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return "true or false";
      return Store(message, field, text == "true", &Reflection::SetBool, &Reflection::AddBool);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = field.enum_type()->FindValueByName(text);
      if (value == nullptr) return NamesOf(*field.enum_type());
      return Store(message, field, value, &Reflection::SetEnum, &Reflection::AddEnum);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return Store(message, field, text, &Reflection::SetString, &Reflection::AddString);
    default:
      return "nothing: a parameter cannot set this field";
  }
}

using ParameterNames = std::set<std::string, std::less<>>;

// The parameters, of any task, that are lists. Such a parameter is repeated for each element.
const ParameterNames& ListNames() {
  static const auto* const names = [] {
    auto* const made = new ParameterNames;
    for (int task = 0; task <= static_cast<int>(models::Task::kTensors); ++task) {
      for (const KnownParameter& one : OptionsOf(static_cast<models::Task>(task))) {
        if (!one.field->is_repeated()) continue;
        made->insert(one.name);
        // In camelCase.
        made->insert(absl::StrCat(one.name.substr(0, one.name.rfind('.') + 1), one.field->json_name()));
      }
    }
    return made;
  }();
  return *names;
}

// Finds the field of a path such as "region.x"; `inside` becomes the message that it lies in. Null if there
// is none.
const FieldDescriptor* FindField(absl::string_view path, const FieldDescriptor& top,
                                 google::protobuf::Message** inside) {
  const FieldDescriptor* field = &top;
  size_t dot = path.find('.');
  // Most parameters are of another field.
  if (!IsNamed(*field, path.substr(0, dot))) return nullptr;
  while (dot != absl::string_view::npos) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) return nullptr;
    *inside = (*inside)->GetReflection()->MutableMessage(*inside, field);
    const Descriptor& type = *field->message_type();
    path.remove_prefix(dot + 1);
    dot = path.find('.');
    const absl::string_view name = path.substr(0, dot);
    field = nullptr;
    for (int i = 0; i < type.field_count() && field == nullptr; ++i) {
      if (IsNamed(*type.field(i), name)) field = type.field(i);
    }
    if (field == nullptr) return nullptr;
  }
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ? nullptr : field;
}

absl::Status Unknown(const std::string& name, const std::vector<KnownParameter>& options) {
  std::vector<std::string> known;
  for (const KnownParameter& one : CommonParameters()) known.push_back(one.name);
  for (const KnownParameter& one : options) known.push_back(one.name);
  return InvalidField(Shown(name), absl::StrCat("is not a parameter; expected ", absl::StrJoin(known, ", ")));
}

// Sets `field` of `inside`. `given` are the fields that earlier parameters have set.
absl::Status SetOnce(const std::pair<std::string, std::string>& parameter, const FieldDescriptor& field,
                     google::protobuf::Message& inside, std::set<const FieldDescriptor*>& given) {
  const auto& [name, text] = parameter;
  if (!given.insert(&field).second && !field.is_repeated())
    return InvalidField(name, "is given twice; give it once");
  const std::string expected = Put(text, field, inside);
  if (expected.empty()) return absl::OkStatus();
  return InvalidField(name, absl::StrCat("is ", Shown(text), "; expected ", expected));
}

}  // namespace

absl::StatusOr<QueryParameters> ParseQuery(absl::string_view query) {
  QueryParameters parameters;
  size_t singles = 0;
  if (const auto count = std::count(query.begin(), query.end(), '&') + 1; count > kMaxQueryParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("query: has ", count, " parameters; expected at most ", kMaxQueryParameters));
  }
  for (const absl::string_view part : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    auto name = Decoded(halves.first);
    auto value = Decoded(halves.second);
    if (!name || !value) {
      return absl::InvalidArgumentError(
          absl::StrCat("query: ", Shown(part), " has a '%' that is not followed by two hexadecimal digits"));
    }
    if (!models::IsUtf8(*name) || !models::IsUtf8(*value))
      return absl::InvalidArgumentError(absl::StrCat("query: ", Shown(part), " is not UTF-8 when decoded"));
    if (ListNames().count(*name) == 0 && ++singles > kMaxSingleParameters) {
      return absl::InvalidArgumentError(absl::StrCat(
          "query: has more than ", kMaxSingleParameters,
          " parameters that are not lists; give each parameter once, and repeat only those that are lists (",
          absl::StrJoin(ListNames(), ", "), ")"));
    }
    parameters.emplace_back(*std::move(name), *std::move(value));
  }
  return parameters;
}

std::vector<KnownParameter> CommonParameters() {
  std::vector<KnownParameter> known;
  for (const FieldDescriptor* field : CommonFields()) AppendLeaves(*field, "", known);
  return known;
}

std::vector<KnownParameter> OptionsOf(models::Task task) {
  std::vector<KnownParameter> known;
  const FieldDescriptor* options = OptionsField(task);
  for (int i = 0; options != nullptr && i < options->message_type()->field_count(); ++i)
    AppendLeaves(*options->message_type()->field(i), "", known);
  return known;
}

absl::Status TakeCommonParameters(QueryParameters& parameters, v1::PredictRequest* message) {
  std::set<const FieldDescriptor*> given;
  QueryParameters others;
  for (auto& parameter : parameters) {
    const FieldDescriptor* field = nullptr;
    google::protobuf::Message* inside = message;
    for (const FieldDescriptor* top : CommonFields()) {
      if (field == nullptr) field = FindField(parameter.first, *top, &inside);
    }
    if (field == nullptr) {
      others.push_back(std::move(parameter));
    } else if (absl::Status set = SetOnce(parameter, *field, *inside, given); !set.ok()) {
      return set;
    }
  }
  parameters = std::move(others);
  return absl::OkStatus();
}

absl::Status SetOptions(const QueryParameters& parameters, models::Task task, v1::PredictRequest* message) {
  if (parameters.empty()) return absl::OkStatus();
  const FieldDescriptor* options = OptionsField(task);
  if (options == nullptr) return Unknown(parameters.front().first, {});
  google::protobuf::Message* const outer = message->GetReflection()->MutableMessage(message, options);
  std::set<const FieldDescriptor*> given;
  for (const auto& parameter : parameters) {
    const FieldDescriptor* field = nullptr;
    google::protobuf::Message* inside = outer;
    for (int i = 0; i < options->message_type()->field_count() && field == nullptr; ++i)
      field = FindField(parameter.first, *options->message_type()->field(i), &inside);
    if (field == nullptr) return Unknown(parameter.first, OptionsOf(task));
    if (absl::Status set = SetOnce(parameter, *field, *inside, given); !set.ok()) return set;
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
