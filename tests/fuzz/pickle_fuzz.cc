// Fuzzes the pickle of a state_dict, as the data.pkl of an archive with two storages. state_dict_fuzz seldom
// gets this far, because the offsets and sizes of the zip archive must be consistent.
#include <string>
#include <string_view>

#include "models/weights/format/state_dict.h"
#include "models/weights/format/testing/files.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::models::testing::AsBytes;
  const std::string pickle(saccade::fuzz::AsText(data, size));
  const std::string archive = saccade::models::testing::Zip({{"archive/data.pkl", pickle},
                                                             {"archive/data/0", std::string(64, '\1')},
                                                             {"archive/data/1", std::string(8, '\2')}});
  saccade::fuzz::ReadWeights(AsBytes(archive), saccade::models::ParseStateDict);
  return 0;
}
