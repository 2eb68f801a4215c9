#include "muster/parallel/nodes/node_messages.h"

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

bool always(int) {
  return true;
}

}  // namespace

NodeMessages::NodeMessages(NodeLink& link, int channel, std::size_t underWay)
    : link_(link), channel_(channel), bodies_(static_cast<std::size_t>(link.nodes())) {
  for (std::size_t i = 0; i < underWay; ++i) calls_.emplace_back(2 * bodies_.size());
}

void NodeMessages::sum(std::span<double> values) {
  const auto nodes = static_cast<std::size_t>(link_.nodes());
  numbers_.resize(nodes * values.size());
  const auto of = [&](std::size_t n) {
    return std::span(numbers_).subspan(n * values.size(), values.size());
  };
  std::ranges::copy(values, of(static_cast<std::size_t>(link_.node())).begin());
  run(std::as_bytes(values), std::as_writable_bytes(std::span(numbers_)), always, always);
  std::ranges::fill(values, 0.0);
  for (std::size_t n = 0; n < nodes; ++n)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += of(n)[i];
}

void NodeMessages::copy(const Tensor& values, int from, int to, const Tensor& into) {
  const bool sends = link_.node() == from, receives = link_.node() == to;
  exchange(
      sends ? bytesOf(values) : std::span<std::byte>(),
      [&](int n) { return receives && n == from ? bytesOf(into) : std::span<std::byte>(); },
      [&](int n) { return n == to; });
}

void NodeMessages::allGather(int local, Messages& messages) {
  const auto checked = [&](int n, const auto& use) {
    try {
      use();
    } catch (const InvalidArgument& error) {
      throw NodeFailure(fmt::format("{} has sent an invalid message: {}", link_.nameOf(n), error.what()));
    }
  };
  const auto participant = [&](int n) { return static_cast<std::size_t>(local * link_.nodes() + n); };
  exchange(
      messages.head(participant(link_.node())), [&](int n) { return messages.head(participant(n)); }, always);
  for (int n = 0; n < link_.nodes(); ++n)
    checked(n, [&] { bodies_[static_cast<std::size_t>(n)] = messages.body(participant(n)); });
  const auto body = [&](int n) { return bodies_[static_cast<std::size_t>(n)]; };
  exchange(body(link_.node()), body, always);
  for (int n = 0; n < link_.nodes(); ++n)
    if (n != link_.node()) checked(n, [&] { messages.arrived(participant(n)); });
}

}  // namespace muster
