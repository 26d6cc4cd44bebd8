#include "server/catalog/promotions.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "server/catalog/state_file.h"
#include "server/catalog/text_lines.h"
#include "server/logging/log.h"
#include "server/repository/promote_config.h"

namespace saccade::server {
namespace {

constexpr char kFirstLine[] = "saccade promotions 1";
constexpr int64_t kMaxNumber = std::numeric_limits<int64_t>::max();
// The longest text that is kept, before it is escaped. The stamp of very many files may be longer.
constexpr size_t kMaxTextBytes = size_t{64} << 10;

std::string FilesOf(const ModelStamp& stamp, int64_t replaces, int64_t shadow) {
  const auto of = [&](int64_t version) {
    const auto found = stamp.versions.find(version);
    return found == stamp.versions.end() ? std::string() : found->second;
  };
  return absl::StrCat(stamp.shared, "\n", of(replaces), "\n", of(shadow));
}

bool CanBeWritten(const std::string& model, const KeptPromotion& kept) {
  return model.size() <= kMaxTextBytes && kept.files.size() <= kMaxTextBytes &&
         kept.promotion.rule.size() <= kMaxTextBytes &&
         kept.promotion.decision.reason.size() <= kMaxTextBytes;
}

bool Unescape(absl::string_view value, std::string* text) {
  // A byte is written as at most four characters.
  return value.size() <= 4 * kMaxTextBytes && absl::CUnescape(value, text);
}

// The measures, each in full; "inf" if it is not known.
absl::Status ReadValues(absl::string_view text, GateMeasures* measures) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (words.size() != measures->values.size())
    return absl::InvalidArgumentError(absl::StrCat(measures->values.size(), " numbers"));
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::SimpleAtod(words[i], &measures->values.at(i)) || std::isnan(measures->values.at(i)))
      return absl::InvalidArgumentError("numbers");
  }
  return absl::OkStatus();
}

// Reads a model's lines after the one with its name.
absl::Status ReadPromotion(TextLines& lines, KeptPromotion* kept) {
  Promotion& promotion = kept->promotion;
  GateDecision& decision = promotion.decision;
  absl::string_view value;
  if (!lines.Take("rule", &value) || !Unescape(value, &promotion.rule) ||
      !ReadPromoteRule(promotion.rule).ok())
    return Damaged(lines.number(), "rule TEXT");
  if (!lines.TakeNumber("replaces", 1, kMaxNumber, &promotion.replaces))
    return Damaged(lines.number(), "replaces N");
  if (!lines.TakeNumber("shadow", 1, kMaxNumber, &promotion.shadow))
    return Damaged(lines.number(), "shadow N");
  int64_t promoted = 0;
  if (!lines.TakeNumber("promoted", 0, 1, &promoted)) return Damaged(lines.number(), "promoted 0 or 1");
  decision.promoted = promoted == 1;
  int64_t at = 0;
  if (!lines.TakeNumber("at", 0, kMaxNumber, &at)) return Damaged(lines.number(), "at NANOSECONDS");
  decision.at = absl::FromUnixNanos(at);
  if (!lines.Take("reason", &value) || !Unescape(value, &decision.reason))
    return Damaged(lines.number(), "reason TEXT");
  if (!lines.TakeNumber("compared", 1, kMaxNumber, &decision.measures.compared))
    return Damaged(lines.number(), "compared N");
  if (!lines.TakeNumber("timed", 0, kMaxNumber, &decision.measures.timed))
    return Damaged(lines.number(), "timed N");
  if (!lines.Take("values", &value) || !ReadValues(value, &decision.measures).ok())
    return Damaged(lines.number(), absl::StrCat("values and ", decision.measures.values.size(), " numbers"));
  if (!lines.Take("files", &value) || !Unescape(value, &kept->files))
    return Damaged(lines.number(), "files TEXT");
  return absl::OkStatus();
}

}  // namespace

std::string WritePromotions(const std::map<std::string, KeptPromotion>& promotions) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  size_t written = 0;
  for (const auto& [model, kept] : promotions) {
    if (!CanBeWritten(model, kept)) continue;
    const Promotion& promotion = kept.promotion;
    const GateDecision& decision = promotion.decision;
    std::string values;
    for (const double value : decision.measures.values) absl::StrAppendFormat(&values, " %.17g", value);
    const std::string lines = absl::StrCat(
        "model ", absl::CEscape(model), "\nrule ", absl::CEscape(promotion.rule), "\nreplaces ",
        promotion.replaces, "\nshadow ", promotion.shadow, "\npromoted ", decision.promoted ? 1 : 0, "\nat ",
        absl::ToUnixNanos(decision.at), "\nreason ", absl::CEscape(decision.reason), "\ncompared ",
        decision.measures.compared, "\ntimed ", decision.measures.timed, "\nvalues", values, "\nfiles ",
        absl::CEscape(kept.files), "\n");
    // The last line fits as well.
    if (text.size() + lines.size() + 32 > kMaxPromotionsBytes) break;
    text += lines;
    ++written;
  }
  absl::StrAppend(&text, "end ", written, "\n");
  return text;
}

absl::StatusOr<std::map<std::string, KeptPromotion>> ReadPromotions(absl::string_view text) {
  if (text.size() > kMaxPromotionsBytes)
    return absl::InvalidArgumentError(absl::StrCat("expected at most ", kMaxPromotionsBytes, " bytes"));
  TextLines lines(text);
  if (!lines.TakeLine(kFirstLine)) return Damaged(lines.number(), kFirstLine);
  std::map<std::string, KeptPromotion> promotions;
  absl::string_view value;
  while (lines.Take("model", &value)) {
    std::string model;
    if (!Unescape(value, &model) || model.empty()) return Damaged(lines.number() - 1, "model NAME");
    KeptPromotion kept;
    if (absl::Status read = ReadPromotion(lines, &kept); !read.ok()) return read;
    if (!promotions.emplace(std::move(model), std::move(kept)).second)
      return Damaged(lines.number() - 1, "each model once");
  }
  // A file that was cut off has another number, or none.
  const auto size = static_cast<int64_t>(promotions.size());
  int64_t number = 0;
  if (!lines.TakeNumber("end", size, size, &number))
    return Damaged(lines.number(), absl::StrCat("end ", size));
  return promotions;
}

Promotions::Promotions(const std::string& folder)
    : folder_(folder), path_(folder.empty() ? "" : absl::StrCat(folder, "/promotions.txt")) {
  if (folder.empty()) return;
  const auto text = ReadStateFile(path_, kMaxPromotionsBytes);
  if (absl::IsNotFound(text.status())) return;
  auto kept = text.ok() ? ReadPromotions(*text) : text.status();
  if (kept.ok()) {
    kept_ = *std::move(kept);
    return;
  }
  Log(LogLevel::kWarning, "remembered promotions ignored",
      {{"file", path_},
       {"reason", std::string(kept.status().message())},
       {"expected", "the file as the daemon wrote it; without it, shadow versions are tried anew"}});
}

void Promotions::Adjust(const ModelStamp& stamp, ModelEntry* entry) const {
  ModelSettings& settings = entry->settings;
  if (!settings.shadow || !settings.shadow->promote) return;
  PromoteRule& rule = *settings.shadow->promote;
  const auto found = kept_.find(settings.name);
  if (found == kept_.end()) return;
  const Promotion& promotion = found->second.promotion;
  const bool is_same = promotion.rule == rule.text && promotion.replaces == rule.replaces &&
                       promotion.shadow == settings.shadow->version &&
                       found->second.files == FilesOf(stamp, rule.replaces, settings.shadow->version);
  if (!is_same) return;
  if (!promotion.decision.promoted) {
    settings.shadow->decided = promotion.decision;
    return;
  }
  settings.version_labels[std::string(kStableLabel)] = promotion.shadow;
  settings.promotion = promotion;
  settings.shadow.reset();
}

void Promotions::Keep(const std::string& model, Promotion promotion, const ModelStamp& stamp) {
  std::string files = FilesOf(stamp, promotion.replaces, promotion.shadow);
  kept_[model] = {std::move(promotion), std::move(files)};
  if (folder_.empty()) return;
  // Merge promotions that other daemons have written to the file since it was read.
  if (const auto text = ReadStateFile(path_, kMaxPromotionsBytes); text.ok()) {
    if (auto others = ReadPromotions(*text); others.ok()) kept_.merge(*others);
  }
  const absl::Status saved = ReplaceStateFile(folder_, path_, WritePromotions(kept_));
  if (saved.ok()) return;
  Log(LogLevel::kWarning, "a promotion is not remembered",
      {{"model", model},
       {"reason", std::string(saved.message())},
       {"expected",
        "--state-folder names a folder that the daemon may write; without it, the next start tries the "
        "shadow "
        "version anew"}});
}

}  // namespace saccade::server
