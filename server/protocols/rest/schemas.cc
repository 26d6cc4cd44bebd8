#include "server/protocols/rest/schemas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kPackage[] = "saccade.v1.";

// Messages that occur in requests and in responses have a schema for each use.
std::string NameOf(const Descriptor& type, SchemaUse use) {
  const absl::string_view name = absl::StripPrefix(type.full_name(), kPackage);
  return absl::StrCat(use == SchemaUse::kRequest ? "v1.request." : "v1.", name);
}

Json Integer64Schema(SchemaUse use) {
  Json text = {{"type", "string"}, {"pattern", "^-?[0-9]{1,20}$"}};
  if (use == SchemaUse::kResponse) return text;
  return {{"anyOf", Json::array({{{"type", "integer"}}, std::move(text)})}};
}

Json RealSchema(SchemaUse use) {
  if (use == SchemaUse::kRequest) return {{"type", "number"}};
  return {{"anyOf", Json::array({{{"type", "number"}}, {{"enum", {"NaN", "Infinity", "-Infinity"}}}})}};
}

Json EnumSchema(const google::protobuf::EnumDescriptor& type) {
  Json names = Json::array();
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return {{"type", "string"}, {"enum", std::move(names)}};
}

// The schema of one value of the field.
Json ValueSchema(const FieldDescriptor& field, SchemaUse use, Json& schemas) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return ScalarSchema(field, use);
  if (field.message_type()->full_name() == "google.protobuf.Duration")
    return {{"type", "string"}, {"pattern", "^-?[0-9]+(\\.[0-9]+)?s$"}};
  return AddSchema(*field.message_type(), use, schemas);
}

Json FieldSchema(const FieldDescriptor& field, SchemaUse use, Json& schemas) {
  if (field.is_map()) {
    return {{"type", "object"},
            {"additionalProperties", ValueSchema(*field.message_type()->map_value(), use, schemas)}};
  }
  Json value = ValueSchema(field, use, schemas);
  if (!field.is_repeated()) return value;
  return {{"type", "array"}, {"items", std::move(value)}};
}

}  // namespace

Json ScalarSchema(const FieldDescriptor& field, SchemaUse use) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return {{"type", "integer"}, {"format", "int32"}};
    case FieldDescriptor::CPPTYPE_UINT32:
      return {{"type", "integer"}, {"minimum", 0}};
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
      return Integer64Schema(use);
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealSchema(use);
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumSchema(*field.enum_type());
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES)
        return {{"type", "string"}, {"contentEncoding", "base64"}};
      return {{"type", "string"}};
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return Json::object();
}

Json AddSchema(const Descriptor& type, SchemaUse use, Json& schemas) {
  const std::string name = NameOf(type, use);
  Json reference = {{"$ref", absl::StrCat("#/components/schemas/", name)}};
  if (schemas.contains(name)) return reference;
  // Entered before its fields, because a message may contain itself.
  schemas[name] = Json::object();
  Json properties = Json::object();
  Json required = Json::array();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    properties[field.name()] = FieldSchema(field, use, schemas);
    if (use == SchemaUse::kResponse && !field.has_presence()) required.push_back(field.name());
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  schemas[name] = std::move(schema);
  return reference;
}

}  // namespace saccade::server
