// The interface between a user's program, as saved by PyTorch, and the server: named tensors in, named
// tensors out. Such a file is code: loading it runs it.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/programs/signature.h"

namespace saccade::models {

class TensorProgram {
 public:
  // A contiguous tensor on the CPU; or the strings of a BYTES tensor in row-major order, as a List[str].
  using Value = c10::IValue;

  TensorProgram() = default;
  TensorProgram(const TensorProgram&) = delete;
  TensorProgram& operator=(const TensorProgram&) = delete;
  virtual ~TensorProgram() = default;

  virtual const Signature& signature() const = 0;
  // Remarks for the operator of the daemon.
  virtual const std::vector<std::string>& notes() const = 0;
  // A remark that Run() has brought; empty if there is none.
  virtual std::string remark() const { return ""; }
  // Whether Run() takes one row alone, although larger batches may come: the caller runs it for each row.
  // Only where Signature::may_split allows it.
  virtual bool takes_one_row() const { return false; }

  // `inputs` has one value per input of the signature, in its order: None for a missing optional one, the
  // others of its types and dims (the caller must check this, as some programs read beyond tensors that are
  // smaller than expected). Returns one value per output, in order, checked against the signature; they may
  // share the inputs' memory, which is not written to. Blocks until done, computing on the calling thread's
  // ATen thread pool; may be called from any number of threads at once, provided that the program keeps no
  // state of its own. Throws std::exception with the program's error, or with the output that differs from
  // the signature.
  virtual std::vector<Value> Run(std::vector<Value> inputs) const = 0;
};

struct ProgramOptions {
  Signature signature;
  std::optional<int> gpu = std::nullopt;
  // Number of threads that may run the program at the same time.
  int instances = 1;
  // The parameters of Triton's PyTorch backend, by name.
  Options options = {};
  // The folder that links of the program's files may not leave. If empty, it is the program's own folder.
  std::string repository = {};
};

// Reads and checks the file and RUNS ITS CODE: TorchScript, or an AOTInductor package if the name ends in
// .pt2. The file may be replaced or removed afterwards. Throws LoadError.
std::unique_ptr<TensorProgram> LoadProgram(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
