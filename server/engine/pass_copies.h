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
  // Decides at random whether to copy the requests of a pass, and reserves room for all of them. Null if they
  // are not copied, or if the model has no shadow version that computes whole passes. Called before the first
  // of the requests is answered.
  static std::unique_ptr<PassCopies> Choose(const Shares& shares, const std::vector<ShareAnswer>& answers);

  // The shadow version, which computes the copies; and their room.
  const std::shared_ptr<ReadyModel>& shadow() const { return copies_.model; }
  const std::shared_ptr<ShadowRoom>& room() const { return room_; }
  // Returns `pass` for the first request that is added, and an untimed pass for the others, so that the pass
  // counts once.
  PassTime Timed(PassTime pass) const;

  void Add(std::shared_ptr<PredictCall> call) { copies_.calls.push_back(std::move(call)); }

  // Passes the copies to the ShadowSender. Called once, after the requests were answered. Requests that
  // failed meanwhile, or that other passes computed in part, have no copy: the shadow version's pass is then
  // smaller and is not timed.
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
