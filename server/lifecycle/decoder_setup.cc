#include "server/lifecycle/decoder_setup.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/decode/workers/worker_decoder.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Shared memory that all idle workers keep together, and the least that each keeps.
constexpr uint64_t kKeptBytes = uint64_t{128} << 20;
constexpr uint64_t kMinKeptBytes = uint64_t{4} << 20;

// The program lies beside the daemon's.
std::string WorkerProgram() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return (own.parent_path() / "saccade-decode-worker").string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecoderSetup>> DecoderSetup::Create(const Flags& flags, int threads,
                                                                   Metrics* metrics, Clock* clock) {
  std::unique_ptr<DecoderSetup> decoding(new DecoderSetup);
  if (flags.decode_mode != DecodeMode::kThread) {
    const absl::Status started = decoding->StartWorkers(flags, threads, metrics, clock);
    if (started.ok()) return decoding;
    if (flags.decode_mode == DecodeMode::kProcess) {
      return absl::FailedPreconditionError(
          absl::StrCat("--decode=process: ", started.message(),
                       "; allow seccomp filters, install saccade-decode-worker beside saccaded, or pass "
                       "--decode=thread"));
    }
    Log(LogLevel::kWarning,
        "pictures are decoded on the daemon's own threads, where a fault of a library ends the daemon",
        {{"reason", started.message()}});
  } else {
    Log(LogLevel::kInfo, "pictures are decoded on the daemon's own threads", {{"threads", threads}});
  }
  decoding->decoder_ = std::make_unique<ThreadDecoder>(flags.decode);
  return decoding;
}

absl::Status DecoderSetup::StartWorkers(const Flags& flags, int threads, Metrics* metrics, Clock* clock) {
  std::vector<std::string_view> reasons;
  for (int end = 0; end < kWorkerEnds; ++end)
    reasons.emplace_back(WorkerEndName(static_cast<WorkerEnd>(end)));
  auto decode_metrics = metrics->ForDecodeWorkers(reasons);
  WorkerPoolOptions options;
  options.program = WorkerProgram();
  options.max_idle = threads;
  options.kept_bytes = std::max(kMinKeptBytes, kKeptBytes / static_cast<uint64_t>(threads));
  options.on_end = [counted = decode_metrics.get()](WorkerEnd end, const std::string& how,
                                                    const std::string& reference) {
    counted->RecordEnd(static_cast<size_t>(end));
    const LogLevel level = end == WorkerEnd::kNotWanted ? LogLevel::kInfo : LogLevel::kError;
    Log(level, "a decode worker has ended",
        {{"reason", absl::string_view(WorkerEndName(end))}, {"how", how}, {"reference", reference}});
  };
  auto pool = WorkerPool::Create(std::move(options), clock);
  if (!pool.ok()) return pool.status();
  metrics_ = std::move(decode_metrics);
  pool_ = *std::move(pool);
  decoder_ = std::make_unique<WorkerDecoder>(flags.decode, pool_.get());
  Log(LogLevel::kInfo, "pictures are decoded in worker processes", {{"at_the_same_time", threads}});
  return absl::OkStatus();
}

void DecoderSetup::RefreshMetrics() {
  if (pool_ == nullptr) return;
  const WorkerPool::Counts counts = pool_->counts();
  metrics_->SetWorkers(counts.busy, counts.idle, counts.started);
}

}  // namespace saccade::server
