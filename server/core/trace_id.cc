#include "server/core/trace_id.h"

namespace saccade::server {

std::string ToHex(SpanId id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * sizeof(id), '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, id >>= 4) *digit = kDigits[id & 0xf];
  return text;
}

std::string ToHex(TraceId id) { return ToHex(id.high) + ToHex(id.low); }

}  // namespace saccade::server
