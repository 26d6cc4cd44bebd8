// The interface between a program that somebody else made, as PyTorch saves them, and the server: named
// tensors in, named tensors out. Such a file is code: loading it is running it.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/options.h"
#include "models/programs/signature.h"

namespace saccade::models {

class TensorProgram {
 public:
  // A tensor on the CPU, contiguous; or the texts of a BYTES tensor in row-major order, as a List[str].
  using Value = c10::IValue;

  TensorProgram() = default;
  TensorProgram(const TensorProgram&) = delete;
  TensorProgram& operator=(const TensorProgram&) = delete;
  virtual ~TensorProgram() = default;

  virtual const Signature& signature() const = 0;
  // What whoever runs the daemon should know of it.
  virtual const std::vector<std::string>& notes() const = 0;

  // One value per input of the signature, in its order: none for an optional one that is missing, the others
  // of its types and dims (which the caller has checked: some programs read beyond tensors that are smaller
  // than they were made for). One per output, in its order, checked against it; they may share the inputs'
  // memory, which is not written to. Blocks until done, computing on the calling thread's ATen thread pool;
  // may be called from any number of threads at once, as long as the program keeps no state of its own.
  // Throws std::exception with what the program said, or which output differs from the signature.
  virtual std::vector<Value> Run(std::vector<Value> inputs) const = 0;
};

struct ProgramOptions {
  Signature signature;
  std::optional<int> gpu = std::nullopt;
  // Threads that are to run it at the same time.
  int instances = 1;
  // As Triton's PyTorch backend names them.
  Options options = {};
};

// Reads, checks and RUNS CODE OF the file: TorchScript, or for a name that ends in .pt2 a package of
// AOTInductor. The file may be replaced or removed afterwards. Throws LoadError.
std::unique_ptr<TensorProgram> LoadProgram(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
