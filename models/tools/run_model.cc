// Runs a model on raw tensors, for the parity tests:
//   saccade_run_model ARCHITECTURE WEIGHTS BATCH INPUT OUTPUT [OPTION=VALUE]...
// INPUT holds BATCH pictures as float32 [B, 3, H, W]; OUTPUT gets the logits as float32 [B, classes].
#include <ATen/ops/empty.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "models/model.h"
#include "models/registry.h"

namespace {

using saccade::models::Classification;
using saccade::models::Failure;

saccade::models::Options ParseOptions(int argc, char** argv, int first) {
  saccade::models::Options options;
  for (int i = first; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    if (equals == std::string::npos) throw std::runtime_error(option + ": expected OPTION=VALUE");
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return options;
}

void Run(int argc, char** argv) {
  if (argc < 6)
    throw std::runtime_error("expected ARCHITECTURE WEIGHTS BATCH INPUT OUTPUT [OPTION=VALUE]...");
  const auto model = saccade::models::Load(argv[1], ParseOptions(argc, argv, 6), argv[2]);
  const saccade::models::ImageInput& input = model->description().input;
  const at::Tensor batch = at::empty({std::stol(argv[3]), 3, input.height, input.width}, at::kFloat);
  std::ifstream in(argv[4], std::ios::binary);
  in.read(static_cast<char*>(batch.data_ptr()), static_cast<std::streamsize>(batch.nbytes()));
  if (!in || in.peek() != EOF)
    throw std::runtime_error(std::string(argv[4]) + ": does not hold exactly the batch");

  std::ofstream out(argv[5], std::ios::binary);
  for (const auto& result : model->Run(batch)) {
    if (const auto* failure = std::get_if<Failure>(&result)) throw std::runtime_error(failure->message);
    const auto& logits = std::get<Classification>(result).logits;
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
  }
  if (!out.flush()) throw std::runtime_error(std::string(argv[5]) + ": cannot write");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_run_model: %s\n", error.what());
    return 1;
  }
}
