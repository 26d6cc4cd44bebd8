// Measurements that were made while a model was loaded, and are reused for other models of the same kind. Of
// our own networks, models of one kind differ only in the values of their weights, which affect neither the
// time of a pass nor the memory. Of graphs and programs, whose configuration does not tell their cost, and of
// networks whose precision is chosen by samples, models of one kind have files with the same contents.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/catalog/file_digests.h"
#include "server/repository/model_settings.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Maximum number of kinds that are remembered. Each new version of a graph or a program is another kind.
inline constexpr size_t kMaxKinds = 4096;

struct MeasuredKind {
  struct Pass {
    int64_t bucket = 0;
    int64_t size = 0;
    absl::Duration took;
  };
  // Threads used by one forward pass, and how many instances compute at the same time.
  int threads = 1;
  int instances = 1;
  // The passes of the warm-up, in the order in which they were learned.
  std::vector<Pass> passes;
  // Memory that the model holds.
  int64_t bytes = 0;
  // The precision that was chosen by the model's samples, as models::PrecisionName() says, and why. Empty if
  // samples choose none.
  std::string precision = {};
  std::string precision_reason = {};
  // The higher, the later the kind was last used. Written by ModelKinds.
  int64_t last_use = 0;
};

// Size of a version's weights in bytes; 0 if there are none. Blocks on the file system.
int64_t WeightsBytes(const ModelVersion& version);

// The part of a model's kind, as text, that follows from its settings and from the size of its weights. Empty
// for ensembles and for models on GPUs, which have no kind. Blocks on the file system.
std::string KindOfSettings(const ModelSettings& settings, const ModelVersion& version, int max_threads);

// The part that follows from the contents of the model's files: empty if they do not affect its cost. Of a
// graph, these are all files of the version's folder, because the graph may refer to them; of a program, its
// file; of one of our own networks whose precision is chosen `by_samples`, its weights and the samples.
// nullopt if the files cannot be read: the model then has no kind. Blocks on the file system.
std::optional<std::string> KindOfFiles(const ModelSettings& settings, const ModelVersion& version,
                                       bool by_samples, FileDigests* digests);

// Thread-safe.
class ModelKinds {
 public:
  // Called with all kinds when one was added, one call at a time.
  using Save = std::function<void(const std::map<std::string, MeasuredKind>&)>;

  ModelKinds() = default;
  // Begins with what was measured earlier. `save` may be null. `sum` reads a file.
  ModelKinds(std::map<std::string, MeasuredKind> kinds, Save save, FileSummer sum = FileSum,
             std::function<absl::Time()> now = absl::Now);

  // The measurements of the kind, which count as used.
  std::optional<MeasuredKind> Find(const std::string& kind);
  // Replaces earlier measurements of the kind. Ignored if `kind` is empty. If there are more than kMaxKinds
  // then, forgets the kind that was not used for the longest. Blocks as `save` does.
  void Keep(const std::string& kind, MeasuredKind measured);

  // Checksums of models' files.
  FileDigests* digests() { return &digests_; }

 private:
  const Save save_ = nullptr;
  FileDigests digests_;
  // Held while `save_` runs; taken before mutex_.
  absl::Mutex save_mutex_;
  absl::Mutex mutex_;
  std::map<std::string, MeasuredKind> kinds_ ABSL_GUARDED_BY(mutex_);
  // The last use of the kind that was used last.
  int64_t last_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
