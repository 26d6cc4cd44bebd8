#include "server/protocols/vision/restore_stream.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/encode/volume.h"
#include "server/grpc/message_size.h"
#include "server/logging/log.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/input_method.h"
#include "server/protocols/message_bytes.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/messages.h"
#include "server/protocols/vision/options.h"
#include "server/protocols/vision/restore_parts.h"
#include "server/protocols/vision/results.h"
#include "server/protocols/vision/versions.h"
#include "server/protocols/vision/volumes.h"

namespace saccade::server {
namespace {

constexpr char kMethod[] = "saccade.v1.Vision/Restore";

absl::Status ForRestoration(const models::Description& model, const std::string& name) {
  if (model.task == models::Task::kRestoration) return absl::OkStatus();
  return InvalidField("model", absl::StrCat("'", name, "' does ", models::TaskName(model.task),
                                            "; Restore is for restoration, call Predict"));
}

}  // namespace

void RestoreStream::OnArrival() {
  scope_.emplace(ObserversOf(*server_.pipeline), start(), kMethod);
  volume_.emplace(server_.pipeline->deps().admission, scope_->client());
  server_.uploads->Add(std::static_pointer_cast<RestoreStream>(shared_from_this()));
}

void RestoreStream::OnMessage(BytePieces message) {
  const size_t bytes = message.size();
  {
    const absl::MutexLock lock(&mutex_);
    taking_ = true;
  }
  try {
    // Shared, because a pool without room destroys its task. A part is one copy, so it is then read here.
    const auto kept = std::make_shared<const BytePieces>(std::move(message));
    const auto read = [this, stream = shared_from_this(), kept] { Take(*kept); };
    if (!ReadMessageOn(server_.pool, scope_->client(), bytes, read).ok()) read();
  } catch (...) {
    EndUpload(OwnError());
    EndTaking(/*reads_on=*/false);
  }
}

void RestoreStream::Take(const BytePieces& message) {
  bool reads_on = false;
  try {
    reads_on = TakeMessage(message);
  } catch (...) {
    EndUpload(OwnError());
  }
  EndTaking(reads_on);
}

// The next part may come only when this one was taken, so both are told in one step.
void RestoreStream::EndTaking(bool reads_on) {
  {
    const absl::MutexLock lock(&mutex_);
    taking_ = false;
    if (reads_on) reading_ = false;
  }
  Proceed();
}

bool RestoreStream::TakeMessage(const BytePieces& message) {
  if (!IsUploading()) return false;
  absl::Status taken = LatenessAt(server_.clock->Now());
  if (taken.ok()) taken = TakePart(message);
  if (!taken.ok()) EndUpload(taken);
  return taken.ok();
}

void RestoreStream::OnHalfClose() {
  if (const absl::Status complete = CheckComplete(); !complete.ok()) {
    EndUpload(complete);
    return;
  }
  // Otherwise the call was ended meanwhile.
  if (!StopUploading()) return;
  // Destroyed with the pipeline's callback, or when Start() has failed.
  const std::shared_ptr<const void> answerer(
      nullptr, [this, stream = shared_from_this()](const void*) { EndUnanswered(); });
  if (const absl::Status started = Start(answerer); !started.ok()) End(started);
}

void RestoreStream::OnCancel() {
  cancellation_->Cancel();
  DropAnswer();
  EndUpload(Cancelled("the client cancelled the call, or its deadline has passed"));
  Proceed();
}

void RestoreStream::OnSent(bool ok) {
  if (!ok) {
    cancellation_->Cancel();
    DropAnswer();
  }
  {
    const absl::MutexLock lock(&mutex_);
    sending_ = false;
  }
  Proceed();
}

bool RestoreStream::IsUploading() {
  const absl::MutexLock lock(&mutex_);
  return uploading_;
}

bool RestoreStream::StopUploading() {
  server_.uploads->Remove(this);
  const absl::MutexLock lock(&mutex_);
  return std::exchange(uploading_, false);
}

void RestoreStream::EndUpload(const absl::Status& why) {
  if (StopUploading()) End(why);
}

void RestoreStream::EndIfLate(absl::Time now) {
  {
    // What has come may wait for the pool.
    const absl::MutexLock lock(&mutex_);
    if (taking_) return;
  }
  if (const absl::Status late = LatenessAt(now); !late.ok()) EndUpload(late);
}

absl::Status RestoreStream::LatenessAt(absl::Time now) {
  const absl::Duration taken = now - scope_->arrival();
  if (taken >= server_.max_upload) {
    return absl::DeadlineExceededError(absl::StrCat("the volume did not come within ",
                                                    absl::FormatDuration(server_.max_upload),
                                                    " (--upload-timeout-seconds)"));
  }
  const absl::MutexLock lock(&mutex_);
  const double expected =
      absl::ToDoubleSeconds(taken - server_.grace) * static_cast<double>(server_.min_bytes_per_second);
  if (static_cast<double>(received_) >= expected) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the volume comes too slowly: ", received_, " bytes in ", absl::FormatDuration(taken),
                   "; expected at least ", server_.min_bytes_per_second, " bytes per second after the first ",
                   absl::FormatDuration(server_.grace), "; send all parts without pauses"));
}

absl::Status RestoreStream::TakePart(const BytePieces& message) {
  v1::RestoreRequest part;
  const auto charge = ParseMessage(message, &part, server_.pipeline->deps().admission, scope_->client());
  if (!charge.ok()) return charge.status();
  if (part.part_case() == v1::RestoreRequest::kHeader) {
    // The header is kept, and fields that nobody knows would be kept with it, uncharged.
    part.mutable_header()->DiscardUnknownFields();
    return TakeHeader(part.header());
  }
  if (part.part_case() == v1::RestoreRequest::kData) return TakeData(part.data());
  return InvalidField("part", "is missing; the first is 'header', the others are 'data'");
}

absl::StatusOr<Request> RestoreStream::ReadHeader(const v1::RestoreHeader& header) {
  auto request =
      FromFields({header.model(), header.version(), header.request_id(), header.priority()}, "grpc");
  if (!request.ok()) return request;
  const auto version = VersionOf(*server_.catalog, header);
  if (!version.ok()) return version.status();
  absl::Status status = CheckOptions(header.restoration());
  if (status.ok() && header.bytes() < 1)
    status = InvalidField("header.bytes", absl::StrCat("is ", header.bytes(), "; expected at least 1"));
  if (status.ok() && header.has_raw()) status = CheckShape("header.raw", header.raw(), header.bytes());
  if (!status.ok()) return status;
  request->version = *version;
  request->cancellation = cancellation_;
  request->input_name = "volume";
  request->medium = models::Medium::kVolume;
  request->accepts = [name = header.model()](const models::Description& model) {
    return ForRestoration(model, name);
  };
  scope_->Describe(*request);
  return request;
}

absl::Status RestoreStream::TakeHeader(const v1::RestoreHeader& header) {
  if (header_) return InvalidField("header", "came twice; after it, every part is 'data'");
  if (header.model().size() <= kMaxModelName && header.request_id().size() <= kMaxRequestId) {
    const absl::MutexLock lock(&mutex_);
    model_ = header.model();
    id_ = header.request_id();
  }
  auto request = ReadHeader(header);
  if (!request.ok()) {
    server_.pipeline->CountMalformed("grpc", request.status().code());
    return request.status();
  }
  // Nothing is held for an announced volume: `volume_` charges what has come, and Start() asks for admission.
  if (absl::Status fits = server_.pipeline->CheckAdmission(*request, header.bytes()); !fits.ok()) return fits;
  volume_->Announce(static_cast<size_t>(header.bytes()));
  request_ = *std::move(request);
  header_ = header;
  return absl::OkStatus();
}

absl::Status RestoreStream::TakeData(std::string_view data) {
  if (!header_) return InvalidField("part", "is 'data'; the first has to be 'header'");
  if (absl::Status taken = volume_->Append(data); !taken.ok()) return taken;
  scope_->AddReceived(data.size());
  const absl::MutexLock lock(&mutex_);
  received_ += static_cast<int64_t>(data.size());
  return absl::OkStatus();
}

absl::Status RestoreStream::CheckComplete() const {
  if (!header_) return InvalidField("part", "is missing; the first has to be 'header'");
  const size_t size = volume_->bytes().size();
  if (size == volume_->announced()) return absl::OkStatus();
  return InvalidField("data", absl::StrCat(size, " bytes came; the header announced ", volume_->announced()));
}

// All parts have come.
absl::Status RestoreStream::Start(std::shared_ptr<const void> answerer) {
  std::vector<Picture> volume;
  const std::string_view bytes = volume_->bytes();
  if (header_->has_raw()) {
    auto raw = FromRawVolume("header.raw", header_->raw(), {bytes.data(), bytes.size()});
    if (!raw.ok()) return raw.status();
    volume.emplace_back(*std::move(raw));
  } else {
    volume.emplace_back(EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}});
  }
  Request request = *std::exchange(request_, std::nullopt);
  request.input = std::move(volume);
  request.charged_bytes = static_cast<int64_t>(bytes.size());
  request.progress = [this](double done) { TellProgress(done); };
  request.encodes_maps = true;
  request.encode = [this](const Response& response) { return MakeAnswer(response); };
  server_.pipeline->Predict(
      std::move(request),
      [this, keep = std::move(answerer)](const absl::StatusOr<Response>& outcome) { Answer(outcome); });
  return absl::OkStatus();
}

void RestoreStream::TellProgress(double done) {
  {
    const absl::MutexLock lock(&mutex_);
    progress_ = done;
  }
  Proceed();
}

absl::Status RestoreStream::MakeAnswer(const Response& response) {
  const auto& result = std::get<models::Restoration>(response.results.at(0));
  const VoxelType type = WantedType(header_->restoration(), response);
  SetFacts(response, header_->request_id(), &made_);
  SetRestoration(result, type, made_.mutable_restoration());
  try {
    auto voxels = VoxelBytes(result, type);
    if (!voxels.ok()) return voxels.status();
    made_voxels_ = std::make_shared<std::string>(*std::move(voxels));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for the answer; try again later");
  }
  return absl::OkStatus();
}

void RestoreStream::Answer(const absl::StatusOr<Response>& outcome) {
  // The volume is not needed while the answer is sent, which takes as long as the client reads.
  volume_->Release();
  if (outcome.ok()) {
    SetTimings(outcome->timings, &made_);
    auto voxels = KeptVoxels(std::exchange(made_voxels_, nullptr), outcome->charge);
    const absl::MutexLock lock(&mutex_);
    if (!is_gone_) {
      answer_ = std::move(made_);
      voxels_ = std::move(voxels);
    }
  }
  End(outcome.status());
}

void RestoreStream::EndUnanswered() {
  try {
    {
      const absl::MutexLock lock(&mutex_);
      if (end_) return;
      end_ = OwnError();
    }
    Proceed();
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a stream could not be ended", {{"error", absl::string_view(error.what())}});
  }
}

void RestoreStream::End(const absl::Status& status) {
  {
    const absl::MutexLock lock(&mutex_);
    end_ = status;
  }
  Proceed();
}

void RestoreStream::DropAnswer() {
  std::shared_ptr<const std::string> voxels;
  const absl::MutexLock lock(&mutex_);
  is_gone_ = true;
  answer_.reset();
  progress_.reset();
  voxels.swap(voxels_);
}

RestoreStream::Action RestoreStream::NextAction() {
  if (!sending_ && !is_gone_) {
    if (auto part = NextPart()) {
      sending_ = true;
      return *std::move(part);
    }
  }
  if (uploading_ && !reading_) {
    reading_ = true;
    return ReadMessage();
  }
  const bool has_more = answer_ || (voxels_ != nullptr && sent_ < voxels_->size());
  if (!end_ || has_more || taking_) return {};
  // Without a scope, the arrival itself has failed.
  if (scope_) scope_->End(*end_, sent_, model_, id_);
  return ToCallEnd(*end_, server_.retry_jitter);
}

// nullopt if there is nothing to send now.
std::optional<BytePieces> RestoreStream::NextPart() {
  if (answer_) return AnswerPart(*std::exchange(answer_, std::nullopt));
  if (voxels_ != nullptr && sent_ < voxels_->size()) {
    const size_t from = sent_;
    sent_ = std::min(voxels_->size(), sent_ + kMaxPartBytes);
    return VoxelsPart(voxels_, from, sent_ - from);
  }
  if (progress_ && !end_) return ProgressPart(*std::exchange(progress_, std::nullopt));
  return std::nullopt;
}

}  // namespace saccade::server
