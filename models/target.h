// Where a network computes, and in which numbers. No LibTorch here.
#pragma once

#include <string>

#include "models/options.h"

namespace saccade::models {

enum class Precision { kFloat32, kTf32, kBFloat16, kFloat16 };

// "fp32", "tf32", "bf16", "fp16".
const char* PrecisionName(Precision precision);
// Throws LoadError that names the legal ones.
Precision ParsePrecision(const std::string& name);

// Of a model's options: every architecture has this one.
Precision PrecisionOf(const Options& options);
Options WithoutPrecision(Options options);

struct Target {
  int gpu = -1;  // -1: the CPU
  Precision precision = Precision::kFloat32;
  // For the tests: passes are recorded and replayed on the CPU too, where a replay is the pass once more,
  // told of the extents by their tensor alone.
  bool replay_on_cpu = false;

  bool on_gpu() const { return gpu >= 0; }
  // Whether convolutions are oneDNN's, packed. Everything else is computed by ATen's operators, which run on
  // either; on the CPU nobody but the tests asks for that.
  bool packed() const { return !on_gpu() && precision == Precision::kFloat32; }
};

}  // namespace saccade::models
