#include "server/simulation/faults/faulty_devices.h"

namespace saccade::server::simulation {

SimDevices::Pass FaultyDevices::Compute(int model, int instance,
                                        const std::vector<std::unique_ptr<BatchTask>>& tasks, Nanos now) {
  Pass pass = SimDevices::Compute(model, instance, tasks, now);
  if (now >= faults_.heals_at) return pass;
  for (const BrokenInstance& broken : faults_.broken) {
    if (broken.model != model || broken.instance != instance || now < broken.from || now >= broken.to)
      continue;
    return {.took = (pass.took * kTimeToFail).Whole(), .ok = false};
  }
  if (random().Chance(faults_.error)) pass.ok = false;
  const bool in_slow_spell = now >= faults_.slow_from && now < faults_.slow_to;
  if (random().Chance(faults_.slow) || in_slow_spell) pass.took *= 10;
  if (random().Chance(faults_.hang)) pass.took += faults_.hang_length;
  return pass;
}

}  // namespace saccade::server::simulation
