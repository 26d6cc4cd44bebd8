#include "server/core/passes_here.h"

#include <algorithm>

namespace saccade::server {
namespace {

thread_local PassesHere t_passes_here = PassesHere::kAny;

}  // namespace

LimitPassesHere::LimitPassesHere(PassesHere limit) : before_(t_passes_here) {
  t_passes_here = std::min(before_, limit);
}

LimitPassesHere::~LimitPassesHere() { t_passes_here = before_; }

PassesHere LimitPassesHere::Current() { return t_passes_here; }

}  // namespace saccade::server
