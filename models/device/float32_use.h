// Which of two meanings float32 has on GPUs: LibTorch has one setting (TF32 or not) for the process.
#pragma once

#include <string>

namespace saccade::models {

// Held by a model or program on a GPU that computes in float32 or TF32 as long as it lives, so that the
// setting does not change under its passes. Models in bf16 and fp16 hold nothing. The first holder sets it;
// once the last one has gone, the next may set the other. Thread-safe.
class Float32Use {
 public:
  // `tf32`: whether products of float32 may be rounded to TF32. Throws LoadError if others hold the other
  // setting; its message begins with `asked`, such as "precision is fp32".
  Float32Use(bool tf32, const std::string& asked);
  ~Float32Use();
  Float32Use(const Float32Use&) = delete;
  Float32Use& operator=(const Float32Use&) = delete;

 private:
  const bool tf32_;
};

}  // namespace saccade::models
