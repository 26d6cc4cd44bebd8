#include "server/protocols/restore_stream.h"

#include <algorithm>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/core/clock.h"
#include "server/encode/volume.h"
#include "server/protocols/call_records.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"
#include "server/protocols/vision_errors.h"
#include "server/protocols/vision_messages.h"
#include "server/protocols/vision_options.h"
#include "server/protocols/vision_results.h"
#include "server/protocols/vision_versions.h"
#include "server/protocols/vision_volumes.h"

namespace saccade::server {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;

absl::Status ForRestoration(const models::Description& model, const std::string& name) {
  if (model.task == models::Task::kRestoration) return absl::OkStatus();
  return InvalidField("model", absl::StrCat("'", name, "' does ", models::TaskName(model.task),
                                            "; Restore is for restoration, call Predict"));
}

}  // namespace

RestoreStream::RestoreStream(const Call& call) : call_(call) {
  {
    const absl::MutexLock lock(&upload_->mutex);
    upload_->stream = this;
  }
  const absl::Duration max_upload = call.max_upload;
  const absl::Duration left = call.arrival + max_upload - Clock::Real()->Now();
  alarm_.Set(absl::ToChronoTime(absl::Now() + left), [upload = upload_, max_upload](bool expired) {
    const absl::MutexLock lock(&upload->mutex);
    if (!expired || upload->stream == nullptr) return;
    std::exchange(upload->stream, nullptr)
        ->End(absl::DeadlineExceededError(absl::StrCat("the volume did not come within ",
                                                       absl::FormatDuration(max_upload),
                                                       " (--upload-timeout-seconds)")));
  });
  StartRead(&part_);
}

RestoreStream::~RestoreStream() { EndUpload(); }

bool RestoreStream::EndUpload() {
  alarm_.Cancel();
  const absl::MutexLock lock(&upload_->mutex);
  return std::exchange(upload_->stream, nullptr) != nullptr;
}

void RestoreStream::OnReadDone(bool ok) {
  absl::Status taken;
  if (!ok) {
    taken = Start();
    if (taken.ok()) return;  // Answer ends the call, or the alarm has.
  } else if (part_.part_case() == v1::RestoreRequest::kHeader) {
    taken = TakeHeader(part_.header());
  } else if (part_.part_case() == v1::RestoreRequest::kData) {
    taken = TakeData(part_.data());
  } else {
    taken = InvalidField("part", "is missing; the first is 'header', the others are 'data'");
  }
  if (taken.ok()) {
    StartRead(&part_);
  } else {
    End(taken);
  }
}

absl::Status RestoreStream::TakeHeader(const v1::RestoreHeader& header) {
  if (header_) return InvalidField("header", "came twice; after it, every part is 'data'");
  auto request =
      FromFields({header.model(), header.version(), header.request_id(), header.priority()}, "grpc");
  const auto version = VersionOf(*call_.catalog, header);
  absl::Status status = request.status();
  if (status.ok()) status = version.status();
  if (status.ok()) status = CheckOptions(header.restoration());
  if (status.ok() && header.bytes() < 1)
    status = InvalidField("header.bytes", absl::StrCat("is ", header.bytes(), "; expected at least 1"));
  if (status.ok() && header.has_raw()) status = CheckShape("header.raw", header.raw(), header.bytes());
  if (!status.ok()) {
    call_.pipeline->CountMalformed("grpc", status.code());
    return status;
  }
  request->version = *version;
  request->client = ClientOfPeer(call_.context->peer());
  request->arrival = call_.arrival;
  request->deadline = DeadlineOf(*call_.context);
  request->cancellation = cancellation_;
  request->input_name = "volume";
  request->medium = models::Medium::kVolume;
  request->accepts = [name = header.model()](const models::Description& model) {
    return ForRestoration(model, name);
  };
  request->record = call_.record;
  if (call_.record != nullptr) call_.record->Describe(*request);
  auto ticket = call_.pipeline->Admit(*request, header.bytes());
  if (!ticket.ok()) return ticket.status();
  ticket_ = *std::move(ticket);
  try {
    volume_.reserve(static_cast<size_t>(header.bytes()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for the volume; try again later");
  }
  request_ = *std::move(request);
  header_ = header;
  return absl::OkStatus();
}

absl::Status RestoreStream::TakeData(const std::string& data) {
  if (!header_) return InvalidField("part", "is 'data'; the first has to be 'header'");
  const auto expected = static_cast<size_t>(header_->bytes());
  if (data.size() > expected - volume_.size()) {
    return InvalidField(
        "data", absl::StrCat("there are more than the ", expected, " bytes that the header announced"));
  }
  volume_ += data;
  if (call_.record != nullptr) call_.record->AddReceived(static_cast<int64_t>(data.size()));
  return absl::OkStatus();
}

// All parts have come.
absl::Status RestoreStream::Start() {
  // The alarm has ended the call already.
  if (!EndUpload()) return absl::OkStatus();
  if (cancellation_->cancelled()) return absl::CancelledError("the client cancelled the call");
  if (!header_) return InvalidField("part", "is missing; the first has to be 'header'");
  if (static_cast<int64_t>(volume_.size()) != header_->bytes()) {
    return InvalidField("data",
                        absl::StrCat(volume_.size(), " bytes came; the header announced ", header_->bytes()));
  }
  std::vector<Picture> volume;
  if (header_->has_raw()) {
    auto raw = FromRawVolume("header.raw", header_->raw(), volume_);
    if (!raw.ok()) return raw.status();
    volume.emplace_back(*std::move(raw));
  } else {
    volume.emplace_back(EncodedPicture{.data = {.owner = nullptr, .bytes = volume_}});
  }
  Request request = *std::exchange(request_, std::nullopt);
  request.input = std::move(volume);
  request.progress = [this](double done) { TellProgress(done); };
  request.encode = [this](const Response& response) { return MakeAnswer(response); };
  call_.pipeline->Predict(
      std::move(request), [this](const absl::StatusOr<Response>& outcome) { Answer(outcome); }, ticket_);
  return absl::OkStatus();
}

void RestoreStream::TellProgress(double done) {
  {
    const absl::MutexLock lock(&mutex_);
    progress_ = done;
  }
  Pump();
}

absl::Status RestoreStream::MakeAnswer(const Response& response) {
  const auto& result = std::get<models::Restoration>(response.results.at(0));
  const VoxelType type = WantedType(header_->restoration(), response);
  SetFacts(response, header_->request_id(), &made_);
  SetRestoration(result, type, made_.mutable_restoration());
  try {
    auto voxels = VoxelBytes(result, type);
    if (!voxels.ok()) return voxels.status();
    made_voxels_ = *std::move(voxels);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for the answer; try again later");
  }
  return absl::OkStatus();
}

void RestoreStream::Answer(const absl::StatusOr<Response>& outcome) {
  if (outcome.ok()) {
    SetTimings(outcome->timings, &made_);
    const absl::MutexLock lock(&mutex_);
    answer_ = std::move(made_);
    voxels_ = std::move(made_voxels_);
  }
  // The answer goes out as slowly as the client reads; what it sent is not needed for that.
  std::string().swap(volume_);
  End(outcome.status());
}

void RestoreStream::End(const absl::Status& status) {
  {
    const absl::MutexLock lock(&mutex_);
    end_ = status;
  }
  Pump();
}

void RestoreStream::OnWriteDone(bool ok) {
  {
    const absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) {
      // The client is gone: nothing of the answer would reach it. The pipeline still holds this, until
      // Answer.
      cancellation_->Cancel();
      answer_.reset();
      sent_ = voxels_.size();
      progress_.reset();
    }
  }
  Pump();
}

// Writes what is next, or ends the call. The last is done without the lock: it may be the end of this.
void RestoreStream::Pump() {
  absl::Status end;
  size_t sent = 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (writing_ || ended_ || WriteNext() || !end_) return;
    ended_ = true;
    end = *end_;
    sent = sent_;
  }
  EndRecord(call_.record.get(), end, [sent] { return sent; });
  NamedCall named{.method = "saccade.v1.Vision/Restore", .record = call_.record.get()};
  if (header_) {
    named.model = header_->model();
    named.id = header_->request_id();
  }
  LogFault(end, named, *call_.context);
  Finish(ToGrpcStatus(end, call_.retry_jitter, call_.context));
}

// False if nothing is left.
bool RestoreStream::WriteNext() {
  writing_part_.Clear();
  if (answer_) {
    *writing_part_.mutable_answer() = *std::exchange(answer_, std::nullopt);
  } else if (sent_ < voxels_.size()) {
    const size_t count = std::min(kPartBytes, voxels_.size() - sent_);
    writing_part_.set_voxels(voxels_.data() + sent_, count);
    sent_ += count;
  } else if (progress_ && !end_) {
    writing_part_.mutable_progress()->set_done(*std::exchange(progress_, std::nullopt));
  } else {
    return false;
  }
  writing_ = true;
  StartWrite(&writing_part_);
  return true;
}

}  // namespace saccade::server
