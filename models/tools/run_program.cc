// Runs a tensor program on values in a file, for the parity tests:
//   saccade_run_program PROGRAM INPUTS OUTPUTS [--batched] [--one-by-one]
//       [--input|--output NAME:TYPE:DIMS]...
// INPUTS is a list of tensors written by torch.save, and OUTPUTS becomes such a file. TYPE is FP32, INT64
// ..., DIMS is like 3,-1. With --one-by-one the program runs row by row, and the outputs are concatenated.
#include <ATen/ops/cat.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/programs/program.h"

namespace saccade::models {
namespace {

using Value = TensorProgram::Value;

struct Arguments {
  std::string program, inputs, outputs;
  bool one_by_one = false;
  Signature signature = {};
};

DataType TypeNamed(const std::string& name) {
  if (const std::optional<DataType> type = DataTypeOf(name)) return *type;
  throw std::runtime_error(name + " is not a type");
}

TensorSignature ParseTensor(const std::string& text) {
  std::istringstream fields(text);
  TensorSignature tensor;
  std::string type;
  std::getline(fields, tensor.name, ':');
  std::getline(fields, type, ':');
  tensor.type = TypeNamed(type);
  for (std::string dim; std::getline(fields, dim, ',');) tensor.dims.push_back(std::stoll(dim));
  return tensor;
}

Arguments ParseArguments(const std::vector<std::string>& given) {
  if (given.size() < 3) throw std::runtime_error("expected PROGRAM INPUTS OUTPUTS [OPTION]...");
  Arguments arguments = {.program = given[0], .inputs = given[1], .outputs = given[2]};
  for (size_t i = 3; i < given.size(); ++i) {
    if (given[i] == "--batched") {
      arguments.signature.batched = true;
    } else if (given[i] == "--one-by-one") {
      arguments.one_by_one = true;
    } else if (given[i] == "--input") {
      arguments.signature.inputs.push_back(ParseTensor(given.at(++i)));
    } else if (given[i] == "--output") {
      arguments.signature.outputs.push_back(ParseTensor(given.at(++i)));
    } else {
      throw std::runtime_error(given[i] + " is not an option");
    }
  }
  return arguments;
}

std::vector<Value> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const Value list = torch::jit::pickle_load(bytes);
  const auto values = list.toListRef();
  std::vector<Value> read(values.begin(), values.end());
  return read;
}

void Write(const std::vector<Value>& outputs, const std::string& path) {
  c10::List<at::Tensor> list;
  for (const Value& output : outputs) list.push_back(output.toTensor());
  const std::vector<char> bytes = torch::jit::pickle_save(Value(list));
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::vector<Value> RunRows(const TensorProgram& program, const std::vector<Value>& inputs) {
  std::vector<std::vector<at::Tensor>> rows(program.signature().outputs.size());
  for (int64_t row = 0; row < inputs.at(0).toTensor().size(0); ++row) {
    std::vector<Value> one;
    for (const Value& input : inputs) one.emplace_back(input.toTensor().narrow(0, row, 1));
    const std::vector<Value> outputs = program.Run(std::move(one));
    for (size_t i = 0; i < outputs.size(); ++i) rows[i].push_back(outputs[i].toTensor());
  }
  std::vector<Value> all;
  for (const auto& tensors : rows) all.emplace_back(at::cat(tensors));
  return all;
}

void Run(const Arguments& arguments) {
  const auto program = LoadProgram(arguments.program, {.signature = arguments.signature});
  std::vector<Value> inputs = Read(arguments.inputs);
  Write(arguments.one_by_one ? RunRows(*program, inputs) : program->Run(std::move(inputs)),
        arguments.outputs);
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  try {
    saccade::models::Run(saccade::models::ParseArguments({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_run_program: %s\n", error.what());
    return 1;
  }
}
