#include "server/ensembles/step_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/bad_field.h"

namespace saccade::server {

absl::Status WithStepName(const absl::Status& why, const std::string& step) {
  const auto code = absl::IsNotFound(why) ? absl::StatusCode::kUnavailable : why.code();
  absl::Status named(code, absl::StrCat(step, ": ", why.message()));
  why.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    if (type != kBadFieldPayload) named.SetPayload(type, payload);
  });
  return named;
}

}  // namespace saccade::server
