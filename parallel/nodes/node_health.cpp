#include "muster/parallel/nodes/node_health.h"

#include <fmt/format.h>

#include <string_view>

namespace muster {

std::string nodeName(int node, const std::string& host) {
  return fmt::format("node {} ({})", node, host);
}

NodeHealth::NodeHealth(int node, int nodes, const std::string& host, std::chrono::milliseconds silence,
                       Time now)
    : node_(node), host_(host), silence_(silence), lastLook_(now), lastBeat_(now) {
  for (int n = 0; n < nodes; ++n) others_.push_back({.name = fmt::format("node {}", n), .heard = now});
  of(node).name = nodeName(node, host);
}

NodeNotice NodeHealth::notice(NodeNotice::Kind kind, int culprit) const {
  NodeNotice notice{.kind = kind, .culprit = culprit, .silence = silence_.count()};
  std::ranges::copy(std::string_view(host_).substr(0, notice.host.size() - 1), notice.host.begin());
  return notice;
}

std::optional<NodeHealth::Failure> NodeHealth::take(int node, const NodeNotice& notice) {
  Other& other = of(node);
  const int culprit = notice.culprit;
  if (notice.magic != NodeNotice::kMagic)
    return Failure{node, fmt::format("{} runs another program, or another version of muster", other.name)};
  switch (notice.kind) {
    case NodeNotice::Hello:
      other.name = nodeName(node, {notice.host.begin(), std::ranges::find(notice.host, '\0')});
      silence_ = std::max(silence_, std::chrono::milliseconds(notice.silence));
      other.greeted = true;
      break;
    case NodeNotice::Failed:
      if (culprit == node || !isNode(culprit)) {
        other.failed = true;
        return Failure{node, fmt::format("{} has failed; its own message says why", other.name)};
      }
      if (culprit == node_) return Failure{node_, fmt::format("{} has given this node up", other.name)};
      return Failure{culprit, fmt::format("{} is lost, as {} reports", nameOf(culprit), other.name), true};
    case NodeNotice::Heard:
      if (!isNode(culprit)) return Failure{node, fmt::format("{} has failed", other.name)};
      of(culprit).failed = true;
      return Failure{culprit, fmt::format("{} has failed; its own message says why", nameOf(culprit))};
    case NodeNotice::Goodbye:
      other.ended = true;
      break;
    default:
      break;
  }
  return std::nullopt;
}

bool NodeHealth::beats(Time now) {
  // If this process itself was stopped, it could receive nothing meanwhile.
  if (now - lastLook_ > silence_ / 2)
    for (Other& other : others_) other.heard = now;
  lastLook_ = now;
  const bool due = now - lastBeat_ > silence_ / 8;
  if (due) lastBeat_ = now;
  return due;
}

void NodeHealth::checkSilence(Time now, const std::function<bool(int)>& waitsFor,
                              const std::function<void(const Failure&)>& found) const {
  for (int n = 0; n < nodes(); ++n) {
    if (n == node_) continue;
    const Other& other = of(n);
    const auto silent = now - other.heard;
    // Messages sent before the goodbye may arrive a moment later.
    if (other.ended && silent > silence_ / 8 && waitsFor(n))
      found({n, fmt::format("{} has ended its program", other.name)});
    if (!other.ended && silent > silence_)
      found({n,
             fmt::format("nothing was heard of {} for {} s: it hangs, was killed, or its network is cut",
                         other.name, std::chrono::duration<double>(silence_).count()),
             true});
  }
}

}  // namespace muster
