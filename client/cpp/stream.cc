#include "client/cpp/stream.h"

#include <utility>

#include "client/cpp/client.h"
#include "client/cpp/messages.h"
#include "client/cpp/stream_call.h"

namespace saccade::client {

Stream::Stream(std::unique_ptr<Call> call) : call_(std::move(call)) {}

Stream::~Stream() = default;

absl::Status Stream::Classify(absl::string_view model, absl::string_view picture,
                              const ClassifyOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, picture, options), start);
}

absl::Status Stream::Detect(absl::string_view model, absl::string_view picture,
                            const DetectOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, picture, options), start);
}

absl::Status Stream::Segment(absl::string_view model, absl::string_view picture,
                             const SegmentOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, picture, options), start);
}

absl::Status Stream::Stereo(absl::string_view model, absl::string_view left, absl::string_view right,
                            const StereoOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, left, right, options), start);
}

absl::Status Stream::Depth(absl::string_view model, absl::string_view picture, const DepthOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, picture, options), start);
}

absl::Status Stream::Embed(absl::string_view model, absl::string_view picture, const EmbedOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, picture, options), start);
}

absl::Status Stream::Actions(absl::string_view model, absl::string_view video, const ActionOptions& options) {
  const absl::Time start = absl::Now();
  return call_->Send(ToRequest(model, video, options), start);
}

void Stream::SendDone() { call_->SendDone(); }

absl::StatusOr<std::optional<StreamItem>> Stream::Next() { return call_->Next(); }

void Stream::Cancel() { call_->Cancel(); }

}  // namespace saccade::client
