#include "server/capture/capture.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/capture/record_format.h"
#include "server/capture/warnings.h"
#include "server/core/chance.h"
#include "server/core/idle_thread.h"

namespace saccade::server {
namespace {

constexpr absl::Duration kBetweenSweeps = absl::Seconds(1);
// How long a file system that takes no more is left alone.
constexpr absl::Duration kAfterFailure = absl::Seconds(1);
constexpr int64_t kMaxSegment = int64_t{64} << 20;
// A segment is deleted as a whole, so that several make up the bounds.
constexpr int kMinSegments = 8;

// Whether the call failed because of what it asked for or because of the daemon. Rejected, late and cancelled
// calls say nothing about either, and come in floods.
bool IsFault(const absl::Status& status) {
  return !status.ok() && !absl::IsResourceExhausted(status) && !absl::IsUnavailable(status) &&
         !absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status);
}

bool IsFaultOfRequest(const absl::Status& status) {
  return IsFault(status) && !absl::IsInternal(status) && !absl::IsUnknown(status);
}

int64_t SizeOf(absl::Span<const BytePieces> body) {
  size_t bytes = 0;
  for (const BytePieces& pieces : body) bytes += pieces.size();
  return static_cast<int64_t>(bytes);
}

std::string Copy(absl::Span<const BytePieces> body, int64_t size) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(size));
  for (const BytePieces& pieces : body) {
    for (const std::string_view piece : pieces.pieces()) bytes.append(piece);
  }
  return bytes;
}

absl::Status CheckRate(absl::string_view member, double rate) {
  if (rate >= 0 && rate <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(member, " is ", rate, "; expected a share from 0 to 1"));
}

}  // namespace

absl::string_view NameOf(CapturedPixels pixels) {
  switch (pixels) {
    case CapturedPixels::kFull:
      return "full";
    case CapturedPixels::kHash:
      return "hash";
    case CapturedPixels::kNone:
      return "none";
  }
  return "";
}

absl::Status CheckChoice(const CaptureChoice& choice) {
  if (absl::Status rate = CheckRate("rate", choice.rate); !rate.ok()) return rate;
  for (const auto& [model, rate] : choice.models) {
    if (absl::Status checked = CheckRate(absl::StrCat("the rate of model '", model, "'"), rate);
        !checked.ok())
      return checked;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Capture>> Capture::Create(const CaptureOptions& options, Hooks hooks,
                                                         Clock* clock) {
  if (absl::Status checked = CheckChoice(options.choice); !checked.ok()) return checked;
  std::unique_ptr<CaptureFolder> folder;
  if (!options.folder.empty()) {
    auto opened =
        CaptureFolder::Open({.path = options.folder,
                             .max_bytes = options.max_bytes,
                             .max_age = options.max_age,
                             .segment_bytes = std::min(kMaxSegment, options.max_bytes / kMinSegments),
                             .segment_age = std::min(absl::Minutes(10), options.max_age / kMinSegments)},
                            clock->Now());
    if (!opened.ok()) return opened.status();
    folder = *std::move(opened);
  }
  std::unique_ptr<Capture> capture(new Capture(options, std::move(hooks), std::move(folder), clock));
  try {
    capture->thread_ = std::thread([raw = capture.get()] { raw->Run(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("cannot capture calls: no thread is left");
  }
  return capture;
}

Capture::Capture(const CaptureOptions& options, Hooks hooks, std::unique_ptr<CaptureFolder> folder,
                 Clock* clock)
    : options_(options),
      hooks_(std::move(hooks)),
      folder_(std::move(folder)),
      clock_(clock),
      fault_room_(options.max_bytes, options.max_age),
      enabled_(options.choice.enabled),
      choice_(std::make_shared<const CaptureChoice>(options.choice)) {
  if (folder_ != nullptr) folder_bytes_ = folder_->bytes();
}

Capture::~Capture() { Stop(absl::ZeroDuration()); }

CaptureChoice Capture::choice() const {
  std::shared_ptr<const CaptureChoice> kept;
  {
    const absl::MutexLock lock(&mutex_);
    kept = choice_;
  }
  return *kept;
}

absl::Status Capture::Change(CaptureChoice choice) {
  if (absl::Status checked = CheckChoice(choice); !checked.ok()) return checked;
  auto replaced = std::make_shared<const CaptureChoice>(std::move(choice));
  const absl::MutexLock lock(&mutex_);
  enabled_.store(replaced->enabled, std::memory_order_relaxed);
  choice_.swap(replaced);
  return absl::OkStatus();
}

bool Capture::Wants(absl::string_view model, const absl::Status& status) const {
  if (!enabled()) return false;
  if (IsFault(status)) return true;
  double rate = 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto own = choice_->models.find(std::string_view(model.data(), model.size()));
    rate = own != choice_->models.end() ? own->second : choice_->rate;
  }
  return RandomlyTrue(rate);
}

bool Capture::Reserve(int64_t bytes) {
  if (held_bytes_.fetch_add(bytes) + bytes <= options_.queue_bytes) return true;
  held_bytes_ -= bytes;
  return false;
}

void Capture::Add(CapturedCall call, absl::Span<const BytePieces> request,
                  absl::Span<const BytePieces> answer) {
  call.request_bytes = SizeOf(request);
  call.answer_bytes = SizeOf(answer);
  const bool copied = options_.pixels != CapturedPixels::kNone;
  const int64_t held = call.held_bytes() + (copied ? call.request_bytes + call.answer_bytes : 0);
  if (!Reserve(held)) return hooks_.count(CaptureFate::kQueueFull, 0);
  if (copied) {
    try {
      call.request = Copy(request, call.request_bytes);
      call.answer = Copy(answer, call.answer_bytes);
    } catch (const std::bad_alloc&) {
      held_bytes_ -= held;
      return hooks_.count(CaptureFate::kQueueFull, 0);
    }
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping()) {
      queue_.push_back(std::move(call));
      return;
    }
  }
  held_bytes_ -= held;
  hooks_.count(CaptureFate::kQueueFull, 0);
}

void Capture::Stop(absl::Duration max) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping()) stop_at_ = clock_->Now() + max;
  }
  if (thread_.joinable()) thread_.join();
}

void Capture::Run() {
  RunAtLowestPriority();
  for (;;) {
    std::deque<CapturedCall> taken;
    bool late = false;
    {
      const absl::MutexLock lock(&mutex_);
      clock_->AwaitUntil(&mutex_, absl::Condition(this, &Capture::IsDue), clock_->Now() + kBetweenSweeps);
      if (queue_.empty() && is_stopping()) return;
      late = stop_at_ <= clock_->Now();
      if (late) {
        taken = std::move(queue_);
        queue_.clear();
      } else if (!queue_.empty()) {
        taken.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
    }
    if (late && !taken.empty())
      hooks_.warn(absl::StrCat("the daemon ends; ", taken.size(), " could not be written in time"));
    for (CapturedCall& call : taken) {
      const int64_t held = call.held_bytes();
      if (late) {
        hooks_.count(CaptureFate::kQueueFull, 0);
      } else {
        // Whatever a call needs more memory for than there is, the thread goes on with the next one.
        try {
          Keep(std::move(call));
        } catch (const std::exception&) {
          hooks_.count(CaptureFate::kWriteFailed, 0);
        }
      }
      held_bytes_ -= held;
    }
    if (folder_ == nullptr) continue;
    folder_->Sweep(clock_->Now());
    folder_bytes_ = folder_->bytes();
  }
}

void Capture::Keep(CapturedCall call) {
  CaptureFate fate = CaptureFate::kWritten;
  if (folder_ != nullptr) {
    int64_t bytes = 0;
    fate = Write(call, &bytes);
    hooks_.count(fate, bytes);
  } else if (IsFaultOfRequest(call.status)) {
    if (fault_room_.HasRoom(clock_->Now())) {
      fault_room_.Add(call.held_bytes(), clock_->Now());
    } else {
      fate = CaptureFate::kTooManyFaults;
      hooks_.count(fate, 0);
    }
  }
  // They would push other calls out of the sink's queue, too.
  if (fate == CaptureFate::kTooManyFaults) return;
  if (hooks_.sink != nullptr) hooks_.sink->Push(std::move(call));
}

CaptureFate Capture::Write(const CapturedCall& call, int64_t* bytes) {
  if (clock_->Now() < write_again_) return CaptureFate::kWriteFailed;
  const auto pixels = PixelsOf(call);
  if (!pixels) return CaptureFate::kTooManyFaults;
  const std::string frame = MakeFrame(call, *pixels, options_.version);
  if (frame.empty()) return CaptureFate::kTooLarge;
  const absl::Status written = folder_->Write(frame, clock_->Now());
  if (written.ok()) {
    *bytes = static_cast<int64_t>(frame.size());
    if (IsFaultOfRequest(call.status)) fault_room_.Add(*bytes, clock_->Now());
    return CaptureFate::kWritten;
  }
  Lose(std::string(written.message()));
  if (absl::IsResourceExhausted(written)) return CaptureFate::kTooLarge;
  write_again_ = clock_->Now() + kAfterFailure;
  return CaptureFate::kWriteFailed;
}

std::optional<CapturedPixels> Capture::PixelsOf(const CapturedCall& call) {
  if (!IsFaultOfRequest(call.status)) return options_.pixels;
  const absl::Time now = clock_->Now();
  if (!fault_room_.HasRoom(now)) return std::nullopt;
  const auto bodies = static_cast<int64_t>(call.request.size() + call.answer.size());
  const bool fits = options_.pixels != CapturedPixels::kFull || fault_room_.HasRoomForBodies(bodies, now);
  return fits ? options_.pixels : CapturedPixels::kHash;
}

void Capture::Lose(const std::string& why) {
  const absl::Time now = clock_->Now();
  if (now - last_warning_ < kMinWarningInterval) return;
  last_warning_ = now;
  hooks_.warn(why);
}

}  // namespace saccade::server
