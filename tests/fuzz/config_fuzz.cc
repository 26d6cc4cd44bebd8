// Fuzzes config.pbtxt, and the architectures' handling of its options.
#include <string>

#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/api/text.h"
#include "server/repository/config_file.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::fuzz::Check;
  using saccade::models::IsUtf8;
  const std::string text(saccade::fuzz::AsText(data, size));
  // Files that are not UTF-8 are rejected before they are parsed.
  if (!IsUtf8(text)) return 0;
  const auto config = saccade::server::ParseConfig(text, "model/config.pbtxt", "model");
  if (!config.ok()) {
    const std::string message(config.status().message());
    Check(config.status().code() == absl::StatusCode::kInvalidArgument, "a bad file is INVALID_ARGUMENT");
    Check(message.rfind("model/config.pbtxt", 0) == 0, "an error begins with the file's name");
    Check(IsUtf8(message), "an error is readable text");
    return 0;
  }
  const saccade::server::ModelSettings& settings = config->settings;
  Check(settings.instances >= 1 && settings.batching.max_batch_size >= 1, "settings are in their bounds");
  try {
    const auto description = saccade::models::Describe(settings.architecture, settings.options);
    Check(description.input.height >= 0 && description.input.width >= 0, "the input has a size");
  } catch (const saccade::models::LoadError& error) {
    Check(IsUtf8(error.what()), "an error is readable text");
  }
  return 0;
}
