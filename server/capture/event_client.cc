#include "server/capture/event_client.h"

#include <curl/curl.h>

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr long kTimeoutMilliseconds = 10'000;  // NOLINT(google-runtime-int): curl's

size_t IgnoreAnswer(char* /*data*/, size_t one, size_t count, void* /*into*/) { return one * count; }

// curl ends the transfer if this returns a value other than 0.
int LookWhetherGivenUp(void* given_up, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(given_up))() ? 1 : 0;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

}  // namespace

struct EventClient::Handle {
  CURL* curl = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};

  ~Handle() { curl_easy_cleanup(curl); }
};

absl::StatusOr<std::unique_ptr<EventClient>> EventClient::Create(const std::string& url,
                                                                 const std::string& version) {
  if (!absl::StartsWith(url, "http://") && !absl::StartsWith(url, "https://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--capture-sink is '", url, "'; expected an address that begins with http:// or https://"));
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return absl::InternalError("cannot initialise libcurl, which is needed to send events");
  auto handle = std::make_unique<Handle>();
  handle->curl = curl_easy_init();
  if (handle->curl == nullptr) return absl::ResourceExhaustedError("out of memory for the sink's client");
  CURL* const curl = handle->curl;
  CURLcode all = CURLE_OK;
  const auto set = [&all, curl](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(curl, option, value);
    if (all == CURLE_OK) all = code;
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_USERAGENT, absl::StrCat("saccaded/", version).c_str());
  set(CURLOPT_POST, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_TIMEOUT_MS, kTimeoutMilliseconds);
  set(CURLOPT_XFERINFOFUNCTION, &LookWhetherGivenUp);
  set(CURLOPT_WRITEFUNCTION, &IgnoreAnswer);
  set(CURLOPT_ERRORBUFFER, handle->error.data());
  if (all != CURLE_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("events cannot be sent to '", url, "' (--capture-sink): ", curl_easy_strerror(all)));
  }
  return std::unique_ptr<EventClient>(new EventClient(url, std::move(handle)));
}

EventClient::EventClient(std::string url, std::unique_ptr<Handle> handle)
    : url_(std::move(url)), handle_(std::move(handle)) {}

EventClient::~EventClient() = default;

absl::Status EventClient::Send(const CloudEvent& event, const std::function<bool()>& given_up) {
  std::unique_ptr<curl_slist, FreeList> lines;
  bool complete = true;
  const auto add = [&](const std::string& line) {
    curl_slist* const longer = curl_slist_append(lines.get(), line.c_str());
    if (longer == nullptr) {
      complete = false;
      return;
    }
    // Only the first line makes another list.
    if (lines == nullptr) lines.reset(longer);
  };
  // Otherwise curl waits for a sink that does not say that it will read the body.
  add("Expect:");
  for (const auto& [name, value] : event.headers) add(absl::StrCat(name, ": ", value));
  if (!complete) return absl::ResourceExhaustedError("out of memory for an event's headers");
  CURL* const curl = handle_->curl;
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, event.body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(event.body.size()));
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &given_up);
  handle_->error[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  if (code != CURLE_OK) {
    const char* const why = handle_->error[0] != '\0' ? handle_->error.data() : curl_easy_strerror(code);
    return absl::UnavailableError(absl::StrCat(url_, ": ", why));
  }
  long status = 0;  // NOLINT(google-runtime-int): curl's
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return absl::OkStatus();
  const std::string why = absl::StrCat(url_, " responded ", status, "; expected 2xx");
  const bool is_for_event = status >= 400 && status < 500 && status != 408 && status != 429;
  return is_for_event ? absl::InvalidArgumentError(why) : absl::UnavailableError(why);
}

}  // namespace saccade::server
