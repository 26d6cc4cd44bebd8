// The smallest model of the catalog's tests.
#pragma once

namespace saccade::server {

// Its configuration. It answers with its input, and its file of weights may be empty.
inline constexpr char kIdentity[] =
    "max_batch_size: 2 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n";

}  // namespace saccade::server
