#include "muster/parallel/training/round_messages.h"

namespace muster {

RoundMessages::RoundMessages(const NodePlace& place)
    : place_(place),
      own_(static_cast<std::size_t>(place.local)),
      all_(static_cast<std::size_t>(place.workers())) {}

Votes RoundMessages::agree(Exchange& exchange, std::span<Contribution> contributions, const Votes& votes) {
  if (place_.nodes == 1) return votes;
  exchange.allGather(write(contributions, votes), room());
  return read(contributions);
}

std::span<const std::byte> RoundMessages::write(std::span<const Contribution> contributions,
                                                const Votes& votes) {
  for (int l = 0; l < place_.local; ++l)
    own_[static_cast<std::size_t>(l)] = {contributions[static_cast<std::size_t>(place_.worker(l))], votes};
  return std::as_bytes(std::span(own_));
}

Votes RoundMessages::read(std::span<Contribution> contributions) const {
  const auto local = static_cast<std::size_t>(place_.local), nodes = static_cast<std::size_t>(place_.nodes);
  Votes together;
  for (std::size_t n = 0; n < nodes; ++n)
    for (std::size_t l = 0; l < local; ++l) {
      const Item& item = all_[n * local + l];
      contributions[l * nodes + n] = item.contribution;
      together = together | item.votes;
    }
  return together;
}

}  // namespace muster
