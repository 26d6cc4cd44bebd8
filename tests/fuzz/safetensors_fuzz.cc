// Fuzzes a weights file in the safetensors format.
#include "models/weights/format/safetensors.h"

#include "tests/fuzz/costs.h"
#include "tests/fuzz/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  saccade::fuzz::ReadWeights(saccade::fuzz::AsBytes(data, size), saccade::models::ParseSafetensors);
  return 0;
}
