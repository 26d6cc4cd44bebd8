// Judges requests whose path names the model by their heads alone, before their bodies are sent.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/engine/pipeline.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// All must outlive this object.
struct ModelHeadCheck {
  Pipeline* pipeline = nullptr;
  const Catalog* catalog = nullptr;
  RetryJitter* retry_jitter = nullptr;

  // The response to a request for a model that the daemon does not have, or that the client may not use; it
  // is counted and logged as a call of `route`, which must be a literal. Nullopt for any other, also if the
  // model is not ready. `field` is what the protocol calls the model's name. Does not block.
  std::optional<HttpResponse> Refuse(const HttpRequest& request, const char* route,
                                     absl::string_view field) const;
};

}  // namespace saccade::server
