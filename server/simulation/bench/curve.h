// Runs one experiment at several rates and prints a line for each. Used to tune the scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::server::simulation {

struct CurveOptions {
  // "saccade", "eager", "triton" or "serving".
  std::string policy = "saccade";
  // The delay of Triton's or TensorFlow Serving's policy.
  double delay_ms = 0;
  int instances = 1;
  int buckets = 1;
  bool zipf = false;
  double cv = 1;
  double alpha_ms = 5;
  double beta_ms = 0.5;
  double deadline_ms = 100;
  double jitter = 0;
  int clients = 1;
  int64_t requests = 20'000;
  int seeds = 2;
  // Requests per second. If empty, the goodput at 99 % is determined.
  std::vector<double> rates;
};

std::string Curve(const CurveOptions& options);

}  // namespace saccade::server::simulation
