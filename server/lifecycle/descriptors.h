// What happens when file descriptors run out.
#pragma once

namespace saccade::server {

// Raises the process's limit to what the machine lets it have, and keeps one descriptor in reserve: with none
// left, clients of gRPC's port are turned away one by one until there are some again. gRPC by itself would
// never again accept anybody after the first for whom there was none. To be called once, before any port is
// opened.
void PrepareForTooManyFiles();

}  // namespace saccade::server
