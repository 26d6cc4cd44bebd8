// Fuzzes the parser of the file of measured kinds.
#include <string_view>

#include "server/catalog/measured_kinds_text.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  using saccade::fuzz::Check;
  const saccade::server::MeasuredOn here = {"m", "1"};
  const auto kinds = saccade::server::ReadKinds({reinterpret_cast<const char*>(data), size}, here);
  if (!kinds.ok()) return 0;
  for (const auto& [name, kind] : *kinds) {
    Check(kind.threads >= 1 && kind.instances >= 1 && kind.bytes >= 0, "numbers are within their bounds");
    for (const auto& pass : kind.passes)
      Check(pass.size >= 1 && pass.took > absl::ZeroDuration(), "a pass has items and takes time");
  }
  const auto again = saccade::server::ReadKinds(saccade::server::WriteKinds(here, *kinds), here);
  Check(again.ok() && again->size() == kinds->size(), "what was read can be written and read again");
  return 0;
}
