// Matches the types of a TorchScript program's forward() with the configuration.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstddef>
#include <string>
#include <vector>

#include "models/programs/program.h"

namespace saccade::models {

class ScriptInterface {
 public:
  // The inputs are forward's arguments, by name or by number, or its only argument is a Dict[str, Tensor] of
  // all inputs; arguments with a default may be omitted. The outputs are its result: one tensor, a tuple or
  // list by number, a NamedTuple by its fields, or a Dict[str, Tensor] by its keys. Throws LoadError if they
  // do not match the signature.
  ScriptInterface(const c10::FunctionSchema& forward, const Signature& signature);

  // Returns forward's arguments, without self.
  std::vector<TensorProgram::Value> Arguments(std::vector<TensorProgram::Value> inputs) const;
  // Returns the outputs in the signature's order. Throws std::runtime_error if one is missing.
  std::vector<TensorProgram::Value> Outputs(const TensorProgram::Value& returned) const;

 private:
  void ReadArguments(const c10::FunctionSchema& forward);
  void ReadReturned(const c10::FunctionSchema& forward);
  std::vector<TensorProgram::Value> ByKey(const TensorProgram::Value& dict) const;

  const Signature& signature_;
  bool takes_dict_ = false;
  // For each input, the index of its argument.
  std::vector<size_t> arguments_of_inputs_;
  // All arguments, with the values to use for those without an input.
  std::vector<TensorProgram::Value> defaults_;
  // For each output, the index of its element. Unused if forward returns a dict.
  std::vector<size_t> elements_of_outputs_;
};

}  // namespace saccade::models
