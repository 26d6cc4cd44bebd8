// A handler for content that never changes.
#pragma once

#include "server/http/http_message.h"

namespace saccade::server {

// Always responds with `response`. Its content is compressed once, with gzip, when a client first takes it
// so: strangers may ask for it as often as they like. REQUIRES: the content is in `attached`.
HttpHandler Always(HttpResponse response);

}  // namespace saccade::server
