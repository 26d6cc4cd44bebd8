#include "models/programs/script_interface.h"

#include <ATen/core/Dict.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "models/api/error.h"
#include "models/programs/positions.h"

namespace saccade::models {
namespace {

using Value = TensorProgram::Value;

bool IsTensorType(const c10::Type& type) {
  if (const auto optional = type.cast<c10::OptionalType>()) return IsTensorType(*optional->getElementType());
  return type.kind() == c10::TypeKind::TensorType;
}

bool IsListOf(const c10::Type& type, c10::TypeKind element) {
  if (const auto optional = type.cast<c10::OptionalType>())
    return IsListOf(*optional->getElementType(), element);
  const auto list = type.cast<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == element;
}

bool IsDictOfTensors(const c10::Type& type) {
  const auto dict = type.cast<c10::DictType>();
  return dict != nullptr && dict->getKeyType()->kind() == c10::TypeKind::StringType &&
         IsTensorType(*dict->getValueType());
}

std::string Text(const c10::FunctionSchema& forward) {
  std::ostringstream text;
  text << forward;
  return text.str();
}

void CheckType(const TensorSignature& input, const c10::Argument& argument) {
  const bool texts = IsListOf(*argument.type(), c10::TypeKind::StringType);
  const bool tensor = IsTensorType(*argument.type());
  if (input.type == DataType::kBytes ? texts : tensor) return;
  const std::string where = "input '" + input.name + "' is " + NameOf(input.type) +
                            ", but the program's argument '" + argument.name() + "' is " +
                            argument.type()->repr_str();
  if (input.type == DataType::kBytes) throw LoadError(where + "; expected List[str] for BYTES");
  throw LoadError(where + (texts ? "; the configuration's type must be TYPE_STRING"
                                 : "; only tensors and List[str] are supported"));
}

void CheckOptional(const TensorSignature& input, const c10::Argument& argument) {
  if (!input.optional || argument.default_value()) return;
  if (argument.type()->kind() == c10::TypeKind::OptionalType) return;
  throw LoadError("input '" + input.name + "' is optional, but the program's argument '" + argument.name() +
                  "' is " + argument.type()->repr_str() +
                  " without a default; expected one, or Optional[...]");
}

// Returns the field names of a NamedTuple; nothing for any other tuple.
std::vector<std::string> FieldsOf(const c10::TupleType& tuple) {
  std::vector<std::string> fields;
  if (tuple.schema() == nullptr) return fields;
  for (const c10::Argument& field : tuple.schema()->arguments()) fields.push_back(field.name());
  return fields;
}

}  // namespace

ScriptInterface::ScriptInterface(const c10::FunctionSchema& forward, const Signature& signature)
    : signature_(signature) {
  ReadArguments(forward);
  ReadReturned(forward);
}

void ScriptInterface::ReadArguments(const c10::FunctionSchema& forward) {
  const std::vector<c10::Argument> arguments(forward.arguments().begin() + 1, forward.arguments().end());
  std::vector<std::string> names;
  for (const c10::Argument& argument : arguments) names.push_back(argument.name());
  if (arguments.size() == 1 && IsDictOfTensors(*arguments[0].type())) {
    takes_dict_ = true;
    const auto type = arguments[0].type()->expect<c10::DictType>();
    if (type->getValueType()->kind() != c10::TypeKind::TensorType) {
      throw LoadError(
          "the program's argument '" + names[0] + "' is " + type->repr_str() +
          "; expected Dict[str, Tensor]. Optional inputs that a request leaves out are not in it");
    }
    for (const TensorSignature& input : signature_.inputs) {
      if (input.type == DataType::kBytes)
        throw LoadError("input '" + input.name + "' is BYTES, but the program takes a Dict[str, Tensor]");
    }
    return;
  }
  const std::string has = "; the program's signature is " + Text(forward);
  try {
    arguments_of_inputs_ = PositionsOf(signature_.inputs, names, arguments.size(), "input");
  } catch (const LoadError& error) {
    throw LoadError(error.what() + has);
  }
  for (size_t i = 0; i < signature_.inputs.size(); ++i) {
    CheckType(signature_.inputs[i], arguments[arguments_of_inputs_[i]]);
    CheckOptional(signature_.inputs[i], arguments[arguments_of_inputs_[i]]);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool sent =
        std::find(arguments_of_inputs_.begin(), arguments_of_inputs_.end(), i) != arguments_of_inputs_.end();
    if (!sent && !arguments[i].default_value()) {
      throw LoadError("no input of the configuration matches the program's argument '" + names[i] +
                      "' (number " + std::to_string(i) + ", counted from 0)" + has);
    }
    defaults_.push_back(arguments[i].default_value().value_or(Value()));
  }
}

void ScriptInterface::ReadReturned(const c10::FunctionSchema& forward) {
  const c10::TypePtr type = forward.returns().at(0).type();
  if (IsDictOfTensors(*type)) return;
  std::vector<std::string> known;
  size_t count = 1;
  if (const auto tuple = type->cast<c10::TupleType>()) {
    known = FieldsOf(*tuple);
    count = tuple->elements().size();
  } else if (IsListOf(*type, c10::TypeKind::TensorType)) {
    count = std::numeric_limits<size_t>::max();  // known only after a run
  } else if (!IsTensorType(*type) && !IsListOf(*type, c10::TypeKind::StringType)) {
    throw LoadError("the program returns " + type->repr_str() +
                    "; expected a tensor, a List[str], or a tuple, list or Dict[str, ...] of tensors");
  }
  try {
    elements_of_outputs_ = PositionsOf(signature_.outputs, known, count, "output");
  } catch (const LoadError& error) {
    throw LoadError(std::string(error.what()) + "; the program's signature is " + Text(forward));
  }
}

std::vector<Value> ScriptInterface::Arguments(std::vector<Value> inputs) const {
  if (takes_dict_) {
    c10::Dict<std::string, at::Tensor> dict;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].isNone()) dict.insert(signature_.inputs[i].name, inputs[i].toTensor());
    }
    return {Value(dict)};
  }
  std::vector<Value> arguments = defaults_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isNone()) arguments[arguments_of_inputs_[i]] = std::move(inputs[i]);
  }
  return arguments;
}

std::vector<Value> ScriptInterface::ByKey(const Value& dict) const {
  const auto entries = dict.toGenericDict();
  std::vector<Value> outputs;
  for (const TensorSignature& output : signature_.outputs) {
    const auto found = entries.find(Value(output.name));
    if (found == entries.end()) {
      std::string keys;
      for (const auto& entry : entries) keys += (keys.empty() ? "" : ", ") + entry.key().toStringRef();
      throw std::runtime_error("output '" + output.name +
                               "' is missing: the program returned a dict with the keys " + keys);
    }
    outputs.push_back(found->value());
  }
  return outputs;
}

std::vector<Value> ScriptInterface::Outputs(const Value& returned) const {
  if (returned.isGenericDict()) return ByKey(returned);
  std::vector<Value> elements;
  const bool texts = returned.isList() && signature_.outputs[0].type == DataType::kBytes;
  if (returned.isTuple()) {
    const auto& tuple = returned.toTupleRef().elements();
    elements.assign(tuple.begin(), tuple.end());
  } else if (returned.isList() && !texts) {
    const auto list = returned.toListRef();
    elements.assign(list.begin(), list.end());
  } else {
    elements = {returned};
  }
  std::vector<Value> outputs;
  for (size_t i = 0; i < signature_.outputs.size(); ++i) {
    if (elements_of_outputs_[i] >= elements.size()) {
      throw std::runtime_error(
          "output '" + signature_.outputs[i].name + "' is number " + std::to_string(elements_of_outputs_[i]) +
          ", counted from 0, but the program returned " + std::to_string(elements.size()));
    }
    outputs.push_back(elements[elements_of_outputs_[i]]);
  }
  return outputs;
}

}  // namespace saccade::models
