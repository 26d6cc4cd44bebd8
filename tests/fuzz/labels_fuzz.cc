// Fuzzes labels.txt.
#include "server/repository/labels.h"

#include <string>
#include <string_view>

#include "models/api/text.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::fuzz::Check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!saccade::models::IsUtf8(text)) return 0;
  const auto labels = saccade::server::ParseLabels({text.data(), text.size()}, "labels.txt");
  if (!labels.ok()) {
    Check(labels.status().message().substr(0, 10) == "labels.txt", "an error begins with the file's name");
    return 0;
  }
  for (const std::string& label : *labels) {
    Check(label.find('\n') == std::string::npos, "a label is one line");
  }
  return 0;
}
