#include "server/engine/device_lost.h"

#include "absl/strings/cord.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kPayload = "saccade/device-lost";

}  // namespace

void SetDeviceLost(absl::Status& status) { status.SetPayload(kPayload, absl::Cord("1")); }

bool IsDeviceLost(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

}  // namespace saccade::server
