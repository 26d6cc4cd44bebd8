#include "models/programs/testing/scripts.h"

#include <ATen/ops/empty.h>
#include <stdlib.h>
#include <torch/csrc/jit/api/module.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "models/api/error.h"

namespace saccade::models::testing {

at::Tensor Floats(const std::vector<std::vector<double>>& rows) {
  const at::Tensor tensor =
      at::empty({static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())}, at::kFloat);
  auto* to = tensor.mutable_data_ptr<float>();
  for (const auto& row : rows) {
    for (const double value : row) *to++ = static_cast<float>(value);
  }
  return tensor;
}

at::Tensor Ints(const std::vector<std::vector<double>>& rows) { return Floats(rows).to(at::kInt); }

std::vector<std::pair<DataType, c10::ScalarType>> AllTypes() {
  using c10::ScalarType;
  return {{DataType::kBool, ScalarType::Bool},     {DataType::kUint8, ScalarType::Byte},
          {DataType::kUint16, ScalarType::UInt16}, {DataType::kUint32, ScalarType::UInt32},
          {DataType::kUint64, ScalarType::UInt64}, {DataType::kInt8, ScalarType::Char},
          {DataType::kInt16, ScalarType::Short},   {DataType::kInt32, ScalarType::Int},
          {DataType::kInt64, ScalarType::Long},    {DataType::kFp16, ScalarType::Half},
          {DataType::kBf16, ScalarType::BFloat16}, {DataType::kFp32, ScalarType::Float},
          {DataType::kFp64, ScalarType::Double}};
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Copy(const std::string& path, const std::string& name) {
  std::string to = path.substr(0, path.rfind('/') + 1) + name;
  std::ofstream(to, std::ios::binary) << Contents(path);
  return to;
}

void SaveScript(const std::string& source, const std::string& path) {
  torch::jit::Module module("test");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(source);
  module.save(path);
}

bool OnThreads(int threads, const std::function<bool()>& check) {
  std::atomic<bool> held = true;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int round = 0; round < 50; ++round) held = held && check();
    });
  }
  for (std::thread& one : all) one.join();
  return held;
}

ScriptTest::ScriptTest() {
  std::string name = ::testing::TempDir() + "scriptsXXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
}

ScriptTest::~ScriptTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ScriptTest::Save(const std::string& source) {
  std::string path = folder_ + "/model.pt";
  SaveScript(source, path);
  return path;
}

std::string ScriptTest::Write(const std::string& contents, const std::string& name) {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::unique_ptr<TensorProgram> ScriptTest::Load(const std::string& source, Signature signature,
                                                Options options) {
  const bool is_path = source.starts_with("/");
  return LoadProgram(is_path ? source : Save(source),
                     {.signature = std::move(signature), .options = std::move(options)});
}

std::string ScriptTest::WhyNotLoaded(const std::string& source, Signature signature, Options options) {
  try {
    Load(source, std::move(signature), std::move(options));
  } catch (const LoadError& error) {
    return error.what();
  }
  return "it was loaded";
}

std::string ScriptTest::WhyRunFails(const TensorProgram& program, std::vector<TensorProgram::Value> inputs) {
  try {
    program.Run(std::move(inputs));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it ran";
}

}  // namespace saccade::models::testing
