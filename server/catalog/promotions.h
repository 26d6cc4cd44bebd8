// The decisions about shadow versions, which are kept for the next start.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/promotion.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {

// A decision, and the files of both versions that it is about.
struct KeptPromotion {
  Promotion promotion;
  // The stamps of the files of both versions and of what they share, as in a ModelStamp.
  std::string files;
};

inline constexpr size_t kMaxPromotionsBytes = size_t{4} << 20;

// By model.
std::string WritePromotions(const std::map<std::string, KeptPromotion>& promotions);
// `text` is not trusted. INVALID_ARGUMENT names the first line that is damaged or has a number out of bounds.
absl::StatusOr<std::map<std::string, KeptPromotion>> ReadPromotions(absl::string_view text);

// Not thread-safe. A decision holds as long as the files of both versions, what they share, and the rule stay
// the same: otherwise the trial begins anew.
class Promotions {
 public:
  // Reads the file "promotions.txt" in `folder`. A file that is damaged is logged and ignored. An empty
  // `folder`: decisions are kept until the daemon ends. Blocks on the file system.
  explicit Promotions(const std::string& folder);

  // Applies what was decided about the entry's shadow version, if it was: a promoted version gets the label
  // `stable` and answers, and a refused one stays so (PromoteRule::decided).
  void Adjust(const ModelStamp& stamp, ModelEntry* entry) const;

  // Keeps a decision in place of an earlier one about the model. Logs why it cannot be written. Blocks on the
  // file system.
  void Keep(const std::string& model, Promotion promotion, const ModelStamp& stamp);

 private:
  const std::string folder_;
  const std::string path_;
  std::map<std::string, KeptPromotion> kept_;
};

}  // namespace saccade::server
