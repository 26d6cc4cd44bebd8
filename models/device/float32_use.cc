#include "models/device/float32_use.h"

#include <ATen/Context.h>

#include <array>
#include <mutex>

#include "models/api/error.h"

namespace saccade::models {
namespace {

struct Holders {
  std::mutex mutex;
  std::array<int, 2> count = {0, 0};  // of float32 as it is, and of TF32; guarded by mutex
};

Holders& AllHolders() {
  static Holders holders;
  return holders;
}

}  // namespace

Float32Use::Float32Use(bool tf32, const std::string& asked) : tf32_(tf32) {
  Holders& holders = AllHolders();
  const std::lock_guard lock(holders.mutex);
  if (holders.count[tf32 ? 0 : 1] > 0) {
    throw LoadError(
        asked + ", but models that are loaded on GPUs compute float32 " + (tf32 ? "without" : "with") +
        " TF32, and a process supports only one of the two; expected the same for all, or bf16 or "
        "fp16, or unload those models first");
  }
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
  ++holders.count[tf32 ? 1 : 0];
}

Float32Use::~Float32Use() {
  Holders& holders = AllHolders();
  const std::lock_guard lock(holders.mutex);
  --holders.count[tf32_ ? 1 : 0];
}

}  // namespace saccade::models
