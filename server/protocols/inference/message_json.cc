#include "server/protocols/inference/message_json.h"

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

namespace saccade::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json ObjectOf(const Message& message);

Json SingleOf(const Message& message, const FieldDescriptor& field) {
  const Reflection& has = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return has.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return has.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return has.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return has.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return has.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return has.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return has.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return has.GetEnum(message, &field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return has.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return ObjectOf(has.GetMessage(message, &field));
}

Json EntryOf(const Message& message, const FieldDescriptor& field, int i) {
  const Reflection& has = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return has.GetRepeatedInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return has.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return has.GetRepeatedUInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return has.GetRepeatedUInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return has.GetRepeatedDouble(message, &field, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return has.GetRepeatedFloat(message, &field, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return has.GetRepeatedBool(message, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return has.GetRepeatedEnum(message, &field, i)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return has.GetRepeatedString(message, &field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return ObjectOf(has.GetRepeatedMessage(message, &field, i));
}

Json ArrayOf(const Message& message, const FieldDescriptor& field) {
  Json array = Json::array();
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) array.push_back(EntryOf(message, field, i));
  return array;
}

// Sorted by key, because the order in the message is arbitrary.
Json MapOf(const Message& message, const FieldDescriptor& field) {
  std::map<std::string, Json> sorted;
  const Reflection& has = *message.GetReflection();
  const FieldDescriptor& name = *field.message_type()->map_key();
  for (int i = 0; i < has.FieldSize(message, &field); ++i) {
    const Message& entry = has.GetRepeatedMessage(message, &field, i);
    const Json key = SingleOf(entry, name);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        SingleOf(entry, *field.message_type()->map_value());
  }
  Json object = Json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

Json ObjectOf(const Message& message) {
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) continue;
    if (field.is_map()) {
      object[field.name()] = MapOf(message, field);
    } else if (field.is_repeated()) {
      object[field.name()] = ArrayOf(message, field);
    } else {
      object[field.name()] = SingleOf(message, field);
    }
  }
  return object;
}

}  // namespace

std::string ToJson(const Message& message) {
  return ObjectOf(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace saccade::server
