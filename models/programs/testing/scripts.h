// TorchScript files from source text, for tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/programs/program.h"

namespace saccade::models::testing {

at::Tensor Floats(const std::vector<std::vector<double>>& rows);
at::Tensor Ints(const std::vector<std::vector<double>>& rows);

// All but kBytes.
std::vector<std::pair<ValueType, c10::ScalarType>> AllTypes();

std::string Contents(const std::string& path);
// Into a file of that name in the same folder; returns its path.
std::string Copy(const std::string& path, const std::string& name);

// Whether `check` holds, many times, on each of so many threads at once.
bool OnThreads(int threads, const std::function<bool()>& check);

class ScriptTest : public ::testing::Test {
 protected:
  ScriptTest();
  ~ScriptTest() override;

  // A module with the methods of `source`; a "def" or several. Returns the file's path.
  std::string Save(const std::string& source);
  std::string Write(const std::string& contents, const std::string& name);

  std::unique_ptr<TensorProgram> Load(const std::string& source, Signature signature, Options options = {});
  // `source` is that, or a path.
  std::string WhyNotLoaded(const std::string& source, Signature signature, Options options = {});
  static std::string WhyRunFails(const TensorProgram& program, std::vector<TensorProgram::Value> inputs);

 private:
  std::string folder_;
};

}  // namespace saccade::models::testing
