// Makes TorchScript files from source text, for tests.
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

// All types except kBytes.
std::vector<std::pair<DataType, c10::ScalarType>> AllTypes();

std::string Contents(const std::string& path);
// Copies a file to `name` in the same folder; returns the copy's path.
std::string Copy(const std::string& path, const std::string& name);

// Saves a module with the methods in `source`, one or more "def", to the file `path`.
void SaveScript(const std::string& source, const std::string& path);

// Returns whether `check` always succeeds when called many times on each of `threads` threads at once.
bool OnThreads(int threads, const std::function<bool()>& check);

class ScriptTest : public ::testing::Test {
 protected:
  ScriptTest();
  ~ScriptTest() override;

  // Like SaveScript(), to a file of the test. Returns its path.
  std::string Save(const std::string& source);
  std::string Write(const std::string& contents, const std::string& name);

  std::unique_ptr<TensorProgram> Load(const std::string& source, Signature signature, Options options = {});
  // `source` is source text or a path.
  std::string WhyNotLoaded(const std::string& source, Signature signature, Options options = {});
  static std::string WhyRunFails(const TensorProgram& program, std::vector<TensorProgram::Value> inputs);

 private:
  std::string folder_;
};

}  // namespace saccade::models::testing
