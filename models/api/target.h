// The device that a network computes on, and the precision. Does not include LibTorch.
#pragma once

#include <string>

#include "models/api/options.h"

namespace saccade::models {

enum class Precision { kFloat32, kTf32, kBFloat16, kFloat16 };

// Returns "fp32", "tf32", "bf16" or "fp16".
const char* PrecisionName(Precision precision);
// Value of the option `precision`, which every architecture has; kFloat32 if it is not given or "auto".
// Throws a LoadError that lists the legal values.
Precision PrecisionOf(const Options& options);
// Whether the option is "auto": who loads the network measures which precision to load it with.
bool IsPrecisionAuto(const Options& options);
Options WithPrecision(Options options, Precision precision);
Options WithoutPrecision(Options options);

// Whether this machine's processor multiplies bfloat16 itself, so that it is faster than float32.
bool CpuMultipliesBFloat16();
// Throws a LoadError if a processor cannot compute in `precision`; by default it is this machine's.
void CheckCpuPrecision(Precision precision);
void CheckCpuPrecision(Precision precision, bool multiplies_bfloat16);

// What a network is loaded for.
struct Target {
  int gpu = -1;  // -1: the CPU
  Precision precision = Precision::kFloat32;
  // For tests: record and replay passes on the CPU too. A replay runs the pass again, with the new extents
  // passed only as a tensor.
  bool replay_on_cpu = false;

  bool on_gpu() const { return gpu >= 0; }
  // Whether convolutions use oneDNN with packed weights, as they do wherever the CPU serves. All others use
  // ATen's operators, which run on both the CPU and the GPU; on the CPU only tests do so.
  bool packed() const {
    return !on_gpu() && !replay_on_cpu &&
           (precision == Precision::kFloat32 || precision == Precision::kBFloat16);
  }
};

}  // namespace saccade::models
