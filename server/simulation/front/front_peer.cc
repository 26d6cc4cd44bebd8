#include "server/simulation/front/front_peer.h"

namespace saccade::server::simulation {

std::string RandomText(Random& random, int64_t size) {
  std::string text(static_cast<size_t>(size), ' ');
  for (char& c : text) c = static_cast<char>(random.Bits());
  return text;
}

void SendInPieces(SessionPipe& pipe, std::string_view bytes, Random& random) {
  while (!bytes.empty() && !pipe.lost()) {
    const size_t size = 1 + static_cast<size_t>(random.Below(static_cast<int64_t>(bytes.size())));
    pipe.Send(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

}  // namespace saccade::server::simulation
