// Writes DeepLabV2's scores, from which labels are made, for the parity test:
//   saccade_deeplab_scores ARCHITECTURE WEIGHTS INPUT OUTPUT [OPTION=VALUE]...
// INPUT is in the format of saccade_run_model. OUTPUT becomes a safetensors file with I.scores [classes, h,
// w] for picture I, limited to its own extent.
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "models/networks/deeplab/network.h"
#include "models/networks/deeplab/table.h"
#include "models/testing/random_weights.h"
#include "models/tools/batch_file.h"
#include "models/tools/option_arguments.h"

namespace saccade::models {
namespace {

DeepLabNetwork Load(const DeepLabOptions& options, const std::string& path) {
  Ledger ledger;
  RecordDeepLab(options, {321, 321}, ledger);
  return {options, LoadWeights(path, ledger.tensors()).tensors};
}

void Run(int argc, char** argv) {
  if (argc < 5) throw std::runtime_error("expected ARCHITECTURE WEIGHTS INPUT OUTPUT [OPTION=VALUE]...");
  const c10::InferenceMode inference;
  const DeepLabNetwork network = Load(ParseDeepLabOptions(argv[1], OptionArguments(argc, argv, 5)), argv[2]);
  const Batch batch = ReadBatch(argv[3]);
  const ScoreMaps maps = network(batch);
  TensorMap scores;
  for (int64_t i = 0; i < batch.pixels.size(0); ++i) {
    const Size size = maps.extents[i];
    scores[std::to_string(i) + ".scores"] =
        maps.scores[i].narrow(1, 0, size.height).narrow(2, 0, size.width).contiguous();
  }
  testing::SaveSafetensors(scores, argv[4]);
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  try {
    saccade::models::Run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_deeplab_scores: %s\n", error.what());
    return 1;
  }
}
