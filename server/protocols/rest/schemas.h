// JSON schemas of saccade.v1's messages, as protobuf's JSON mapping writes them.
#pragma once

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace saccade::server {

// Whether a schema is for messages from clients, or to them. Clients may leave out any field, and write
// 64-bit integers as numbers; the daemon writes every field that has no presence.
enum class SchemaUse { kRequest, kResponse };

// Adds the schema of `type`, and those of the messages in it, to `schemas`, where they are not there yet.
// Returns the reference to it: {"$ref": "#/components/schemas/..."}.
nlohmann::ordered_json AddSchema(const google::protobuf::Descriptor& type, SchemaUse use,
                                 nlohmann::ordered_json& schemas);

// The schema of a single value of a field that is not a message.
nlohmann::ordered_json ScalarSchema(const google::protobuf::FieldDescriptor& field, SchemaUse use);

}  // namespace saccade::server
