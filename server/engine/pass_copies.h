// The requests of a whole forward pass, copied for the shadow version of their model.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/call_share.h"
#include "server/engine/shadow_copy.h"

namespace saccade::server {

// Copies that the shadow version computes in one pass too, so that the times of both passes can be compared.
// Not thread-safe: used on the thread of the pass.
class PassCopies {
 public:
  // Chooses by chance whether the requests of a pass are copied, and makes room for all of them. Null if they
  // are not, and for a version whose shadow version does not compute whole passes. Called before the first
  // of the requests is answered.
  static std::unique_ptr<PassCopies> Choose(const Shares& shares, const std::vector<ShareAnswer>& answers);

  // What the copy of a request is made with.
  const std::shared_ptr<ReadyModel>& shadow() const { return copies_.model; }
  const std::shared_ptr<ShadowRoom>& room() const { return room_; }
  // The time of the pass, for the first request that is added, and not timed for the others: it counts once.
  PassTime Timed(PassTime pass) const;

  void Add(std::shared_ptr<PredictCall> call) { copies_.calls.push_back(std::move(call)); }

  // Hands the copies over once the requests are answered. Requests that failed meanwhile, and those that
  // other passes have computed in part, are not among them: then the shadow version's pass is smaller, and is
  // not timed. Called once.
  void Send();

 private:
  PassCopies(std::shared_ptr<const ReadyModel> answering, std::shared_ptr<ReadyModel> shadow,
             std::shared_ptr<ShadowRoom> room, int64_t requests)
      : answering_(std::move(answering)),
        copies_{std::move(shadow), {}},
        room_(std::move(room)),
        requests_(requests) {}

  const std::shared_ptr<const ReadyModel> answering_;
  ShadowCopies copies_;
  std::shared_ptr<ShadowRoom> room_;
  const int64_t requests_;
};

}  // namespace saccade::server
