// Metrics of the network front: what it refused, its connections and its open requests.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::server {

struct Families;

// Created by Metrics::ForFront(). Must not outlive its Metrics. Thread-safe.
class FrontMetrics {
 public:
  ~FrontMetrics();

  // Counts a refusal for the reason at this position of the list that was given to Metrics::ForFront().
  void RecordRefusal(size_t reason);
  // The connections that are open to the port at this position of its list.
  void SetConnections(size_t port, size_t connections);
  // Requests that were accepted and are not completely answered.
  void SetOpenRequests(size_t requests);

 private:
  friend class Metrics;
  struct Series;
  FrontMetrics(Families* families, const std::vector<std::string_view>& reasons,
               const std::vector<std::string_view>& ports);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
