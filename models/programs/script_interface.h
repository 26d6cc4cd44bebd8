// A TorchScript program's forward, as its own types describe it, beside the configuration.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstddef>
#include <string>
#include <vector>

#include "models/programs/program.h"

namespace saccade::models {

class ScriptInterface {
 public:
  // Inputs are forward's arguments by name or by number, or all of them together are its one argument, a
  // Dict[str, Tensor]; arguments with a default may be left out. Outputs are what it returns: one tensor, a
  // tuple or list by number, a NamedTuple by its fields, or a Dict[str, Tensor] by its keys. Throws
  // LoadError.
  ScriptInterface(const c10::FunctionSchema& forward, const Signature& signature);

  // forward's arguments, without self.
  std::vector<TensorProgram::Value> Arguments(std::vector<TensorProgram::Value> inputs) const;
  // In the signature's order. Throws std::runtime_error if one is not there.
  std::vector<TensorProgram::Value> Outputs(const TensorProgram::Value& returned) const;

 private:
  void ReadArguments(const c10::FunctionSchema& forward);
  void ReadReturned(const c10::FunctionSchema& forward);
  std::vector<TensorProgram::Value> ByKey(const TensorProgram::Value& dict) const;

  const Signature& signature_;
  bool takes_dict_ = false;
  // Of each input: which argument it is.
  std::vector<size_t> arguments_of_inputs_;
  // What arguments are that no input stands for, or whose input is missing.
  std::vector<TensorProgram::Value> defaults_;
  // Of each output; not where a dict is returned.
  std::vector<size_t> elements_of_outputs_;
};

}  // namespace saccade::models
