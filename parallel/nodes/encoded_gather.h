#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "muster/parallel/nodes/node_flight.h"
#include "muster/parallel/nodes/node_messages.h"

namespace muster {

/// All-gathers what rules with a codec send (MergeOps::allGatherEncoded): in the call, or while the workers
/// train. Used by one thread at a time.
class EncodedGather {
 public:
  /// @param channel  the first of two that nothing else uses.
  EncodedGather(NodeLink& link, int channel)
      : link_(link), messages_(link, channel), messagesInFlight_(link, channel + 1) {}

  /// From now on calls may be launched.
  void allowFlights() { flight_ = std::make_unique<Flight>(link_); }
  /// Waits for all launches. None may follow.
  void endFlights() { flight_.reset(); }
  /// Null if nothing is ever launched.
  Flight* flight() { return flight_.get(); }
  /// Arguments: see MergeOps::allGatherEncoded.
  void run(std::span<std::byte> all, std::span<const double> weights, std::function<void(Context&)> then,
           bool later, Context& context);

 private:
  struct Call {
    std::span<std::byte> all;
    std::vector<double> weights;
    std::function<void(Context&)> then;
  };
  void send(const Call& call, NodeMessages& messages, Context& context) const;

  NodeLink& link_;
  NodeMessages messages_, messagesInFlight_;
  Call now_;
  FlightJobs<Call> launched_;
  std::unique_ptr<Flight> flight_;  // last: uses the members above
};

}  // namespace muster
