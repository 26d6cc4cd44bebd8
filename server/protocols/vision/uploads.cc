#include "server/protocols/vision/uploads.h"

#include <exception>
#include <utility>

#include "absl/functional/function_ref.h"
#include "server/logging/log.h"
#include "server/protocols/vision/restore_stream.h"

namespace saccade::server {
namespace {

// Ends one of several uploads; an exception leaves the others to be ended.
void EndSafely(absl::FunctionRef<void()> end) {
  try {
    end();
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "an upload could not be ended", {{"error", absl::string_view(error.what())}});
  }
}

}  // namespace

void Uploads::Add(std::shared_ptr<RestoreStream> stream) {
  absl::Status ended;
  {
    const absl::MutexLock lock(&mutex_);
    ended = ended_;
    if (ended.ok()) streams_.emplace(stream.get(), stream);
  }
  if (!ended.ok()) stream->EndUpload(ended);
}

void Uploads::Remove(RestoreStream* stream) {
  const absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void Uploads::Sweep(absl::Time now) {
  for (const std::shared_ptr<RestoreStream>& stream : All()) EndSafely([&] { stream->EndIfLate(now); });
}

void Uploads::EndAll(const absl::Status& status) {
  {
    const absl::MutexLock lock(&mutex_);
    ended_ = status;
  }
  for (const std::shared_ptr<RestoreStream>& stream : All()) EndSafely([&] { stream->EndUpload(status); });
}

// Ending an upload calls Remove(), so it is done without the lock.
std::vector<std::shared_ptr<RestoreStream>> Uploads::All() {
  std::vector<std::shared_ptr<RestoreStream>> all;
  const absl::MutexLock lock(&mutex_);
  all.reserve(streams_.size());
  for (const auto& [key, stream] : streams_) {
    if (auto alive = stream.lock()) all.push_back(std::move(alive));
  }
  return all;
}

}  // namespace saccade::server
