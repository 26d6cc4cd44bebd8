// Fuzzes a weights file written by torch.save: the zip archive and the pickle in it.
#include "models/weights/format/state_dict.h"

#include "tests/fuzz/costs.h"
#include "tests/fuzz/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  saccade::fuzz::ReadWeights(saccade::fuzz::AsBytes(data, size), saccade::models::ParseStateDict);
  return 0;
}
