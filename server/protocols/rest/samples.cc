#include "server/protocols/rest/samples.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "server/protocols/rest/error.h"
#include "server/protocols/rest/paths.h"
#include "server/protocols/rest/sample_files.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::vector<SampleFile>> SamplesOf(const SampleRestOptions& options,
                                                  const HttpRequest& request) {
  const auto model = options.catalog->FindReady(ValueIn(request, "model"), 0);
  if (!model.ok()) return model.status();
  return SampleFiles((*model)->settings().samples, options.max_message_bytes);
}

HttpResponse List(const SampleRestOptions& options, const HttpRequest& request) {
  const auto samples = SamplesOf(options, request);
  if (!samples.ok()) return ToHttp(samples.status(), options.retry_jitter);
  Json list = Json::array();
  for (const SampleFile& sample : *samples)
    list.push_back({{"name", sample.name}, {"type", sample.type}, {"bytes", sample.bytes}});
  HttpResponse response;
  response.body = Json{{"samples", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.headers.emplace_back("Cache-Control", "no-cache");
  return response;
}

// A file and what is charged for it.
struct Held {
  ByteCharge charge;
  std::string bytes;
};

HttpResponse File(const SampleRestOptions& options, const HttpRequest& request) {
  const auto samples = SamplesOf(options, request);
  if (!samples.ok()) return ToHttp(samples.status(), options.retry_jitter);
  const auto sample = FindSample(*samples, ValueIn(request, "sample"));
  if (!sample.ok()) return ToHttp(sample.status(), options.retry_jitter);
  auto charge = options.ledger->Charge(request.client, sample->bytes);
  if (!charge.ok()) return ToHttp(charge.status(), options.retry_jitter);
  auto bytes = ReadSample(*sample);
  if (!bytes.ok()) return ToHttp(bytes.status(), options.retry_jitter);
  const auto held = std::make_shared<const Held>(Held{*std::move(charge), *std::move(bytes)});
  HttpResponse response;
  response.content_type = sample->type;
  response.attached.emplace_back(std::string_view(held->bytes), held);
  response.compressible = false;
  // Opened by itself in a browser it can do nothing.
  response.headers = {{"Content-Security-Policy", "default-src 'none'; sandbox"},
                      {"Cache-Control", "no-cache"}};
  return response;
}

}  // namespace

std::vector<HttpRoute> SampleRoutes(const SampleRestOptions& options) {
  const auto route = [&options](const char* path, auto function) {
    return HttpRoute{.method = "GET",
                     .path = path,
                     .handler = Responding([options, function](const HttpRequest& request) {
                       return function(options, request);
                     }),
                     .may_block = true};
  };
  return {route("/v1/models/{model}/samples", List), route("/v1/models/{model}/samples/{sample}", File)};
}

}  // namespace saccade::server
