#include "server/tracing/trace_settings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

constexpr int64_t kMaxMilliseconds = 3'600'000;
constexpr int64_t kMaxSpans = 1'000'000;

absl::Status Wrong(absl::string_view name, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", value, "'; expected ", expected));
}

// Reads variables and keeps the first error.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  const absl::Status& status() const { return status_; }

  // Empty if the variable is not set.
  std::string Text(const char* name) {
    return std::string(absl::StripAsciiWhitespace(environment_(name).value_or("")));
  }

  // The first variable that is set: `name`, which is for traces only, or `otherwise`, for all signals.
  std::pair<const char*, std::string> FirstOf(const char* name, const char* otherwise) {
    std::string own = Text(name);
    if (!own.empty()) return {name, std::move(own)};
    return {otherwise, Text(otherwise)};
  }

  void Fail(absl::Status why) { status_.Update(std::move(why)); }

  bool Bool(const char* name) {
    const std::string text = absl::AsciiStrToLower(Text(name));
    if (!text.empty() && text != "true" && text != "false") Fail(Wrong(name, text, "true or false"));
    return text == "true";
  }

  void Number(const std::pair<const char*, std::string>& variable, int64_t min, int64_t max,
              int64_t* number) {
    const auto& [name, text] = variable;
    if (text.empty()) return;
    int64_t read = 0;
    if (absl::SimpleAtoi(text, &read) && read >= min && read <= max) {
      *number = read;
    } else {
      Fail(Wrong(name, text, absl::StrCat("a whole number from ", min, " to ", max)));
    }
  }
  void Number(const char* name, int64_t min, int64_t max, int64_t* number) {
    Number({name, Text(name)}, min, max, number);
  }

  void Milliseconds(const std::pair<const char*, std::string>& variable, int64_t min,
                    absl::Duration* duration) {
    int64_t milliseconds = absl::ToInt64Milliseconds(*duration);
    Number(variable, min, kMaxMilliseconds, &milliseconds);
    *duration = absl::Milliseconds(milliseconds);
  }

  void OneOf(const std::pair<const char*, std::string>& variable, absl::Span<const absl::string_view> known,
             absl::string_view expected) {
    const auto& [name, text] = variable;
    if (!text.empty() && std::find(known.begin(), known.end(), text) == known.end())
      Fail(Wrong(name, text, expected));
  }

 private:
  const Environment& environment_;
  absl::Status status_;
};

std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    const bool good = digits.size() == 2 && absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) &&
                      absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]));
    if (!good) return std::nullopt;
    decoded += absl::HexStringToBytes(digits);
    i += 2;
  }
  return decoded;
}

// Parses percent-encoded "key=value,key=value".
TraceSettings::Pairs ReadPairs(Reader& reader, const std::pair<const char*, std::string>& variable) {
  const auto& [name, text] = variable;
  TraceSettings::Pairs pairs;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view member = absl::StripAsciiWhitespace(part);
    if (member.empty()) continue;
    const std::vector<absl::string_view> halves = absl::StrSplit(member, absl::MaxSplits('=', 1));
    const auto key = PercentDecoded(absl::StripAsciiWhitespace(halves[0]));
    const auto value =
        halves.size() == 2 ? PercentDecoded(absl::StripAsciiWhitespace(halves[1])) : std::nullopt;
    const auto is_control = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
    if (!key || key->empty() || !value || std::any_of(key->begin(), key->end(), is_control) ||
        std::any_of(value->begin(), value->end(), is_control)) {
      // The error does not contain the text, which may hold a password.
      reader.Fail(absl::InvalidArgumentError(
          absl::StrCat(name, ": its part ", pairs.size() + 1,
                       " is not KEY=VALUE; expected KEY=VALUE,KEY=VALUE, with special "
                       "characters percent-encoded")));
      return pairs;
    }
    pairs.emplace_back(*key, *value);
  }
  return pairs;
}

std::string ReadEndpoint(Reader& reader) {
  constexpr char kTraces[] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  constexpr char kAll[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
  const auto [name, text] = reader.FirstOf(kTraces, kAll);
  if (text.empty()) return "";
  absl::string_view rest = text;
  const bool has_scheme = absl::ConsumePrefix(&rest, "http://") || absl::ConsumePrefix(&rest, "https://");
  if (!has_scheme || rest.empty() || rest[0] == '/' ||
      rest.find_first_of(" \t\r\n?#") != absl::string_view::npos) {
    reader.Fail(Wrong(name, text, "http://HOST:PORT or https://HOST:PORT, optionally with a path"));
    return "";
  }
  if (name == absl::string_view(kTraces)) return text;
  return absl::StrCat(absl::StripSuffix(text, "/"), "/v1/traces");
}

Sampler ReadSampler(Reader& reader) {
  constexpr char kName[] = "OTEL_TRACES_SAMPLER";
  constexpr char kArgument[] = "OTEL_TRACES_SAMPLER_ARG";
  Sampler sampler;
  const std::string text = reader.Text(kName);
  absl::string_view kind = text.empty() ? absl::string_view("parentbased_always_on") : text;
  sampler.follows_client = absl::ConsumePrefix(&kind, "parentbased_");
  if (kind == "always_off") {
    sampler.share = 0;
  } else if (kind == "traceidratio") {
    const std::string share = reader.Text(kArgument);
    const bool read = share.empty() || absl::SimpleAtod(share, &sampler.share);
    if (!read || !(sampler.share >= 0 && sampler.share <= 1)) {
      reader.Fail(Wrong(kArgument, share, "a number from 0 to 1, the share of traces that are sampled"));
    }
  } else if (kind != "always_on") {
    reader.Fail(Wrong(kName, text,
                      "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or "
                      "parentbased_traceidratio"));
  }
  return sampler;
}

void ReadConnection(Reader& reader, TraceSettings& settings) {
  reader.OneOf(reader.FirstOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"),
               {"http/protobuf"}, "http/protobuf, the only supported protocol for traces");
  reader.OneOf(reader.FirstOf("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"),
               {"none"}, "none; compression is not supported for traces");
  settings.headers =
      ReadPairs(reader, reader.FirstOf("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"));
  reader.Milliseconds(reader.FirstOf("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"), 1,
                      &settings.timeout);
  const auto file = [&reader](const char* name, const char* otherwise) {
    return reader.FirstOf(name, otherwise).second;
  };
  settings.certificate = file("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE");
  settings.client_key = file("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY");
  settings.client_certificate =
      file("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE");
}

void ReadResource(Reader& reader, TraceSettings& settings) {
  constexpr char kResource[] = "OTEL_RESOURCE_ATTRIBUTES";
  for (auto& pair : ReadPairs(reader, {kResource, reader.Text(kResource)})) {
    if (pair.first == "service.name") {
      settings.service_name = pair.second;
    } else {
      settings.resource.push_back(std::move(pair));
    }
  }
  const std::string name = reader.Text("OTEL_SERVICE_NAME");
  if (!name.empty()) settings.service_name = name;
}

void ReadBatches(Reader& reader, TraceSettings& settings) {
  constexpr char kBatch[] = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE";
  constexpr char kDelay[] = "OTEL_BSP_SCHEDULE_DELAY";
  constexpr char kTrying[] = "OTEL_BSP_EXPORT_TIMEOUT";
  reader.Number("OTEL_BSP_MAX_QUEUE_SIZE", 1, kMaxSpans, &settings.max_queued);
  settings.max_in_batch = std::min(settings.max_in_batch, settings.max_queued);
  reader.Number(kBatch, 1, settings.max_queued, &settings.max_in_batch);
  reader.Milliseconds({kDelay, reader.Text(kDelay)}, 1, &settings.delay);
  reader.Milliseconds({kTrying, reader.Text(kTrying)}, 1, &settings.max_trying);
}

}  // namespace

absl::StatusOr<std::optional<TraceSettings>> ReadTraceSettings(const Environment& environment) {
  Reader reader(environment);
  const bool disabled = reader.Bool("OTEL_SDK_DISABLED");
  constexpr char kExporter[] = "OTEL_TRACES_EXPORTER";
  const std::string exporter = reader.Text(kExporter);
  reader.OneOf({kExporter, exporter}, {"otlp", "none"}, "otlp or none");
  TraceSettings settings;
  settings.endpoint = ReadEndpoint(reader);
  if (!reader.status().ok()) return reader.status();
  if (disabled || exporter == "none" || settings.endpoint.empty()) return std::nullopt;
  settings.sampler = ReadSampler(reader);
  ReadConnection(reader, settings);
  ReadResource(reader, settings);
  ReadBatches(reader, settings);
  if (!reader.status().ok()) return reader.status();
  return settings;
}

}  // namespace saccade::server
