#include "server/metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr absl::string_view kTotal = "_total";
// Like prometheus-cpp: 16 digits do not distinguish all doubles, but print 0.1 as 0.1.
constexpr int kDigits = 16;
// Upper bound of most lines, in bytes.
constexpr size_t kUsualLine = 120;
// Integers below this value have at most 15 digits.
constexpr double kWhole = 1e15;

void AppendNumber(uint64_t number, std::string& text) {
  std::array<char, 20> buffer;
  const auto end = std::to_chars(buffer.begin(), buffer.end(), number).ptr;
  text.append(buffer.begin(), end);
}

void AppendNumber(double number, absl::string_view not_a_number, std::string& text) {
  std::array<char, 32> buffer;
  if (std::isnan(number)) {
    text.append(not_a_number.data(), not_a_number.size());
  } else if (std::isinf(number)) {
    text += number < 0 ? "-Inf" : "+Inf";
  } else if (std::abs(number) < kWhole && number == std::trunc(number) && !std::signbit(number)) {
    AppendNumber(static_cast<uint64_t>(number), text);
  } else {
    const auto end =
        std::to_chars(buffer.begin(), buffer.end(), number, std::chars_format::general, kDigits).ptr;
    text.append(buffer.begin(), end);
  }
}

void AppendEscaped(absl::string_view value, std::string& text) {
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
}

// Seconds since 1970 with millisecond precision, which is what Prometheus keeps.
void AppendTime(absl::Time time, std::string& text) {
  const int64_t milliseconds = absl::ToUnixMillis(time);
  const auto rest = static_cast<unsigned>(milliseconds % 1000);
  absl::StrAppend(&text, milliseconds / 1000, ".", absl::Dec(rest, absl::kZeroPad3));
}

// Appends lines in one format to a text.
class Page {
 public:
  Page(ExpositionFormat format, std::string& text)
      : open_metrics_(format == ExpositionFormat::kOpenMetrics), text_(text) {}

  void Add(const MetricFamily& family, const ExemplarsByLabels* exemplars) {
    AddHead(family);
    for (const ClientMetric& metric : family.metric) {
      SetLabels(metric);
      switch (family.type) {
        case MetricType::Histogram:
          AddHistogram(family.name, metric, exemplars == nullptr ? nullptr : Of(metric, *exemplars));
          break;
        case MetricType::Counter:
          AddSample(family.name, "", metric.counter.value);
          break;
        case MetricType::Gauge:
          AddSample(family.name, "", metric.gauge.value);
          break;
        // The daemon has no such families.
        case MetricType::Summary:
        case MetricType::Untyped:
          break;
      }
    }
  }

 private:
  static const BucketExemplars* Of(const ClientMetric& metric, const ExemplarsByLabels& exemplars) {
    const auto found = exemplars.find(metric.label);
    return found == exemplars.end() ? nullptr : &found->second;
  }

  static absl::string_view TypeName(MetricType type) {
    if (type == MetricType::Counter) return "counter";
    return type == MetricType::Gauge ? "gauge" : "histogram";
  }

  void AddHead(const MetricFamily& family) {
    absl::string_view name = family.name;
    absl::string_view type = TypeName(family.type);
    if (open_metrics_ && family.type == MetricType::Counter && !absl::ConsumeSuffix(&name, kTotal)) {
      // OpenMetrics requires the suffix _total for counters, but renaming Triton's counters would break
      // queries.
      type = "unknown";
    }
    if (!open_metrics_) {
      if (!family.help.empty()) absl::StrAppend(&text_, "# HELP ", name, " ", family.help, "\n");
      absl::StrAppend(&text_, "# TYPE ", name, " ", type, "\n");
      return;
    }
    absl::StrAppend(&text_, "# TYPE ", name, " ", type, "\n");
    for (const absl::string_view unit : {"seconds", "bytes", "ratio"}) {
      if (absl::EndsWith(name, absl::StrCat("_", unit)))
        absl::StrAppend(&text_, "# UNIT ", name, " ", unit, "\n");
    }
    absl::StrAppend(&text_, "# HELP ", name, " ");
    AppendEscaped(family.help, text_);
    text_ += '\n';
  }

  // Formats the labels once for all samples of a metric.
  void SetLabels(const ClientMetric& metric) {
    labels_.clear();
    for (const ClientMetric::Label& label : metric.label) {
      if (!labels_.empty()) labels_ += ',';
      labels_ += label.name;
      labels_ += "=\"";
      AppendEscaped(label.value, labels_);
      labels_ += '"';
    }
  }

  void AddName(const std::string& family, const char* suffix) {
    text_ += family;
    text_ += suffix;
    if (labels_.empty()) {
      text_ += ' ';
      return;
    }
    text_ += '{';
    text_ += labels_;
    text_ += "} ";
  }

  void AppendValue(double value) { AppendNumber(value, open_metrics_ ? "NaN" : "Nan", text_); }

  void AddSample(const std::string& family, const char* suffix, double value) {
    AddName(family, suffix);
    AppendValue(value);
    text_ += '\n';
  }

  void AddCount(const std::string& family, uint64_t count) {
    AddName(family, "_count");
    AppendNumber(count, text_);
    text_ += '\n';
  }

  void AddBucket(const std::string& family, const ClientMetric::Bucket& bucket, const Exemplar* exemplar) {
    text_ += family;
    text_ += "_bucket{";
    text_ += labels_;
    text_ += labels_.empty() ? "le=\"" : ",le=\"";
    AppendValue(bucket.upper_bound);
    text_ += "\"} ";
    AppendNumber(bucket.cumulative_count, text_);
    if (exemplar != nullptr) {
      absl::StrAppend(&text_, " # {trace_id=\"", ToHex(exemplar->span.trace), "\",span_id=\"",
                      ToHex(exemplar->span.id), "\"} ");
      AppendValue(exemplar->value);
      text_ += ' ';
      AppendTime(exemplar->at, text_);
    }
    text_ += '\n';
  }

  void AddHistogram(const std::string& family, const ClientMetric& metric, const BucketExemplars* exemplars) {
    const ClientMetric::Histogram& histogram = metric.histogram;
    if (!open_metrics_) {
      AddCount(family, histogram.sample_count);
      AddSample(family, "_sum", histogram.sample_sum);
    }
    for (size_t i = 0; i < histogram.bucket.size(); ++i) {
      const bool has = exemplars != nullptr && i < exemplars->size() && (*exemplars)[i];
      AddBucket(family, histogram.bucket[i], has ? &*(*exemplars)[i] : nullptr);
    }
    if (open_metrics_) {
      AddCount(family, histogram.sample_count);
      AddSample(family, "_sum", histogram.sample_sum);
    }
  }

  const bool open_metrics_;
  std::string& text_;
  std::string labels_;
};

size_t LinesOf(const Scraped& scraped) {
  size_t lines = 0;
  for (const MetricFamily& family : scraped.families) {
    for (const ClientMetric& metric : family.metric) lines += metric.histogram.bucket.size() + 2;
  }
  return lines;
}

}  // namespace

std::string Render(const Scraped& scraped, ExpositionFormat format) {
  std::string text;
  text.reserve(LinesOf(scraped) * kUsualLine);
  Page page(format, text);
  for (const MetricFamily& family : scraped.families) {
    const auto exemplars = scraped.exemplars.find(family.name);
    page.Add(family, exemplars == scraped.exemplars.end() || format == ExpositionFormat::kText
                         ? nullptr
                         : &exemplars->second);
  }
  if (format == ExpositionFormat::kOpenMetrics) text += "# EOF\n";
  return text;
}

}  // namespace saccade::server
