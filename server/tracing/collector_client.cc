#include "server/tracing/collector_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxAnswer = size_t{64} << 10;
constexpr absl::Duration kMaxWait = absl::Hours(1);

size_t TakeAnswer(char* data, size_t one, size_t count, void* into) {
  auto& answer = *static_cast<std::string*>(into);
  const size_t bytes = one * count;
  // The rest of a longer response is ignored; the transfer continues.
  answer.append(data, std::min(bytes, kMaxAnswer - answer.size()));
  return bytes;
}

// curl ends the transfer if this returns a value other than 0.
int LookWhetherGivenUp(void* given_up, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(given_up))() ? 1 : 0;
}

bool IsWorthTrying(long status) {  // NOLINT(google-runtime-int): curl's
  return status == 429 || status == 502 || status == 503 || status == 504;
}

ResourceAttributes ResourceOf(const TraceSettings& settings, const std::string& version) {
  ResourceAttributes resource = {{"service.name", settings.service_name}};
  const auto add = [&](const char* name, std::string value) {
    const auto same = [name](const auto& pair) { return pair.first == name; };
    if (std::none_of(settings.resource.begin(), settings.resource.end(), same))
      resource.emplace_back(name, std::move(value));
  };
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) add("host.name", host.data());
  add("service.version", version);
  add("telemetry.sdk.name", "saccade");
  add("telemetry.sdk.language", "cpp");
  add("telemetry.sdk.version", version);
  resource.insert(resource.end(), settings.resource.begin(), settings.resource.end());
  return resource;
}

}  // namespace

struct CollectorClient::Handle {
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};

  ~Handle() {
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
  }

  void AddHeader(const std::string& line) {
    if (curl_slist* const longer = curl_slist_append(headers, line.c_str())) headers = longer;
  }
};

absl::StatusOr<std::unique_ptr<CollectorClient>> CollectorClient::Create(const TraceSettings& settings,
                                                                         const std::string& version) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return absl::InternalError("cannot initialise libcurl, which is needed to send traces");
  auto handle = std::make_unique<Handle>();
  handle->curl = curl_easy_init();
  if (handle->curl == nullptr)
    return absl::InternalError("cannot initialise libcurl, which is needed to send traces");
  handle->AddHeader("Content-Type: application/x-protobuf");
  // Otherwise curl sends "Expect: 100-continue" and waits for the response.
  handle->AddHeader("Expect:");
  for (const auto& [name, value] : settings.headers) handle->AddHeader(absl::StrCat(name, ": ", value));
  CURL* const curl = handle->curl;
  CURLcode all = CURLE_OK;
  const auto set = [&all, curl](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(curl, option, value);
    if (all == CURLE_OK) all = code;
  };
  set(CURLOPT_URL, settings.endpoint.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, handle->headers);
  set(CURLOPT_USERAGENT, absl::StrCat("saccaded/", version).c_str());
  set(CURLOPT_POST, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &LookWhetherGivenUp);
  set(CURLOPT_WRITEFUNCTION, &TakeAnswer);
  set(CURLOPT_ERRORBUFFER, handle->error.data());
  if (!settings.certificate.empty()) set(CURLOPT_CAINFO, settings.certificate.c_str());
  if (!settings.client_key.empty()) set(CURLOPT_SSLKEY, settings.client_key.c_str());
  if (!settings.client_certificate.empty()) set(CURLOPT_SSLCERT, settings.client_certificate.c_str());
  if (all != CURLE_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("traces cannot be sent to '", settings.endpoint,
                     "' (OTEL_EXPORTER_OTLP_ENDPOINT): ", curl_easy_strerror(all)));
  }
  return std::unique_ptr<CollectorClient>(new CollectorClient(settings, version, std::move(handle)));
}

CollectorClient::CollectorClient(const TraceSettings& settings, const std::string& version,
                                 std::unique_ptr<Handle> handle)
    : version_(version),
      timeout_(settings.timeout),
      resource_(ResourceOf(settings, version)),
      handle_(std::move(handle)) {}

CollectorClient::~CollectorClient() = default;

SendOutcome CollectorClient::Send(const std::vector<Span>& spans, absl::Duration max,
                                  const std::function<bool()>& given_up) {
  const std::string body = ToOtlp(spans, resource_, version_);
  std::string answer;
  CURL* const curl = handle_->curl;
  const auto milliseconds = std::max<int64_t>(1, absl::ToInt64Milliseconds(std::min(max, timeout_)));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));  // NOLINT(google-runtime-int)
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &given_up);
  handle_->error[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) {
    const char* const why = handle_->error[0] != '\0' ? handle_->error.data() : curl_easy_strerror(code);
    return {.kind = SendOutcome::Kind::kTryAgain, .why = why};
  }
  long status = 0;  // NOLINT(google-runtime-int): curl's
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) {
    OtlpAnswer read = ReadOtlpAnswer(answer);
    return {.kind = SendOutcome::Kind::kSent, .rejected = read.rejected, .why = std::move(read.why)};
  }
  SendOutcome outcome{.kind = SendOutcome::Kind::kRefused,
                      .why = absl::StrCat("the collector answered ", status)};
  if (!IsWorthTrying(status)) return outcome;
  outcome.kind = SendOutcome::Kind::kTryAgain;
  curl_off_t wait = 0;
  if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    outcome.wait = std::min(absl::Seconds(wait), kMaxWait);
  return outcome;
}

}  // namespace saccade::server
