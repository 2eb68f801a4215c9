#include "muster/parallel/nodes/encoded_gather.h"

#include <utility>

namespace muster {

void EncodedGather::run(std::span<std::byte> all, std::span<const double> weights,
                        std::function<void(Context&)> then, bool later, Context& context) {
  later = later && flight_;
  Call& next = later ? launched_.next(*flight_) : now_;
  next.all = all;
  next.weights.assign(weights.begin(), weights.end());
  next.then = std::move(then);
  if (!later) return send(next, messages_, context);
  flight_->launch([this, &next](Context& flying) { send(next, messagesInFlight_, flying); });
}

void EncodedGather::send(const Call& call, NodeMessages& messages, Context& context) const {
  const std::size_t size = call.all.size() / static_cast<std::size_t>(link_.nodes());
  const auto own = call.all.subspan(static_cast<std::size_t>(link_.node()) * size, size);
  messages.run(
      own, call.all, [&](int n) { return call.weights[static_cast<std::size_t>(n)] > 0; },
      [](int) { return true; });
  call.then(context);
}

}  // namespace muster
