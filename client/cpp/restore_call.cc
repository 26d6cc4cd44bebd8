#include "client/cpp/restore_call.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/messages.h"

namespace saccade::client {
namespace {

bool IsValid(const v1::VolumeShape& shape) {
  if (shape.depth() < 1 || shape.height() < 1 || shape.width() < 1) return false;
  if (shape.type() == v1::VolumeShape::TYPE_UNSPECIFIED || !v1::VolumeShape::Type_IsValid(shape.type())) {
    return false;
  }
  constexpr int64_t kMaxVoxelBytes = sizeof(float);
  const int64_t plane = int64_t{shape.height()} * shape.width();
  return plane <= std::numeric_limits<int64_t>::max() / kMaxVoxelBytes / shape.depth();
}

}  // namespace

RestoreCall::RestoreCall(v1::Vision::Stub& stub, grpc::ClientContext& context)
    : stream_(stub.Restore(&context)) {}

absl::Status RestoreCall::Send(const v1::RestoreHeader& header, const VolumeSource& volume,
                               size_t part_bytes) {
  v1::RestoreRequest request;
  *request.mutable_header() = header;
  if (!stream_->Write(request)) return absl::OkStatus();
  for (int64_t left = volume.bytes; left > 0;) {
    std::string& part = *request.mutable_data();
    part.resize(static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(part_bytes))));
    const absl::StatusOr<size_t> read = volume.read(part.data(), part.size());
    if (!read.ok()) return read.status();
    if (*read == 0) {
      return absl::DataLossError(
          absl::StrCat("the volume ends after ", volume.bytes - left, " of its ", volume.bytes, " bytes"));
    }
    part.resize(*read);
    left -= static_cast<int64_t>(*read);
    if (!stream_->Write(request)) return absl::OkStatus();
  }
  stream_->WritesDone();
  return absl::OkStatus();
}

absl::Status RestoreCall::Receive(const RestoreProgress& progress) {
  v1::RestoreResponse response;
  while (stream_->Read(&response)) {
    absl::Status status;
    if (response.has_progress()) {
      // The comparison maps NaN to 0.
      const double reported = response.progress().done();
      const double done = reported > 0 ? std::min(reported, 1.0) : 0.0;
      if (progress && !progress(done)) status = absl::CancelledError("cancelled by the caller");
    } else if (response.has_answer()) {
      status = Announce(response.answer());
    } else if (!response.voxels().empty()) {
      status = Append(response.voxels());
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

grpc::Status RestoreCall::Finish() { return stream_->Finish(); }

absl::StatusOr<Restoration> RestoreCall::TakeAnswer() {
  if (!answer_) return absl::InternalError("the daemon ended the stream without a response");
  if (const auto sent = static_cast<int64_t>(answer_->voxels.size()); sent < answer_->shape.Bytes()) {
    return absl::InternalError(
        absl::StrCat("the daemon announced ", answer_->shape.Bytes(), " bytes of voxels and sent ", sent));
  }
  return *std::move(answer_);
}

absl::Status RestoreCall::Announce(const v1::PredictResponse& response) {
  if (answer_) return absl::InternalError("the daemon answered twice");
  absl::StatusOr<Restoration> answer = FromResponse<Restoration>(response);
  if (!answer.ok()) return answer.status();
  const v1::VolumeShape& shape = response.restoration().shape();
  if (!IsValid(shape)) {
    return absl::InternalError(absl::StrCat("the daemon answered with a volume of ", shape.depth(), "x",
                                            shape.height(), "x", shape.width(), " voxels of type ",
                                            static_cast<int>(shape.type())));
  }
  answer_ = *std::move(answer);
  const std::string first = std::exchange(answer_->voxels, {});
  const auto refuse = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory for the response's ", answer_->shape.Bytes(), " bytes of voxels"));
  };
  try {
    answer_->voxels.reserve(static_cast<size_t>(answer_->shape.Bytes()));
  } catch (const std::bad_alloc&) {
    return refuse();
  } catch (const std::length_error&) {
    return refuse();
  }
  return Append(first);
}

absl::Status RestoreCall::Append(absl::string_view voxels) {
  if (!answer_) return absl::InternalError("the daemon sent voxels before the response");
  const int64_t left = answer_->shape.Bytes() - static_cast<int64_t>(answer_->voxels.size());
  if (static_cast<int64_t>(voxels.size()) > left) {
    return absl::InternalError(absl::StrCat("the daemon sent more voxels than the ", answer_->shape.Bytes(),
                                            " bytes that it announced"));
  }
  answer_->voxels.append(voxels.data(), voxels.size());
  return absl::OkStatus();
}

}  // namespace saccade::client
