// The messages between links beside the calls: a node has started, is alive, has failed, or ends.
#include <algorithm>

#include "muster/parallel/nodes/node_link.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kControl = 0;  // a channel
constexpr std::uint64_t kMagic = 0x6d75737465723032;

// Failed: this node, or the one that it calls the culprit, which it has lost. Heard: the culprit has said
// that it fails.
enum Kind { Hello, Alive, Failed, Heard, Goodbye };

}  // namespace

/// Waits until all nodes have answered.
void NodeLink::greet() {
  lastLook_ = lastBeat_ = Clock::now();
  for (int n = 0; n < nodes_; ++n) {
    if (n == node_) continue;
    others_[static_cast<std::size_t>(n)].heard = lastLook_;
    listenTo(n);
    tell(n, Hello, 0);
  }
  const auto greeted = [&](int n) { return n == node_ || others_[static_cast<std::size_t>(n)].greeted; };
  for (int n = 0; n < nodes_;) {
    poll();
    if (failing_) {
      const Lock lock(mutex_);
      throw NodeFailure(problem_);
    }
    if (greeted(n)) {
      ++n;
      continue;
    }
    if (Clock::now() - lastLook_ > silence_)
      throw NodeFailure(fmt::format("{} has not answered for {} s", nameOf(n),
                                    std::chrono::duration<double>(silence_).count()));
    std::this_thread::sleep_for(1ms);
  }
}

void NodeLink::listenTo(int node) {
  post(nullptr,
       {NodeMessage::Way::Receive, node, kControl, others_[static_cast<std::size_t>(node)].in->bytes()});
}

/// Does nothing if the previous message to the node is still in transfer.
void NodeLink::tell(int node, int kind, int culprit) {
  OtherNode& other = others_[static_cast<std::size_t>(node)];
  if (other.outTicket >= 0) return;
  *other.out = {.magic = kMagic, .kind = kind, .culprit = culprit, .silence = silence_.count()};
  const std::string host = transport_->host();
  std::ranges::copy(host.substr(0, other.out->host.size() - 1), other.out->host.begin());
  post(nullptr, {NodeMessage::Way::Send, node, kControl, other.out->bytes()});
}

void NodeLink::hear(int node) {
  OtherNode& other = others_[static_cast<std::size_t>(node)];
  const Control said = *other.in;
  if (said.magic != kMagic)
    return break_(node, fmt::format("{} runs another program, or another version of muster", nameOf(node)));
  switch (said.kind) {
    case Hello: {
      const auto host = std::string(said.host.begin(), std::ranges::find(said.host, '\0'));
      names_[static_cast<std::size_t>(node)] = nodeName(node, host);
      // With a shorter one, a node would take the others, whose heartbeats are rarer, for lost.
      silence_ = std::max(silence_, std::chrono::milliseconds(said.silence));
      other.greeted = true;
      break;
    }
    case Failed:
      if (said.culprit == node || said.culprit < 0 || said.culprit >= nodes_) {
        other.failed = true;
        return break_(node, fmt::format("{} has failed; its own message says why", nameOf(node)));
      }
      if (said.culprit == node_) return break_(node_, fmt::format("{} has given this node up", nameOf(node)));
      lose(said.culprit);
      return break_(said.culprit,
                    fmt::format("{} is lost, as {} reports", nameOf(said.culprit), nameOf(node)));
    case Heard:
      if (said.culprit < 0 || said.culprit >= nodes_)
        return break_(node, fmt::format("{} has failed", nameOf(node)));
      others_[static_cast<std::size_t>(said.culprit)].failed = true;
      return break_(said.culprit,
                    fmt::format("{} has failed; its own message says why", nameOf(said.culprit)));
    case Goodbye:
      other.ended = true;
      return;  // the node sends nothing more
    default:
      break;
  }
  listenTo(node);
}

void NodeLink::beat() {
  const auto now = Clock::now();
  // If this process itself was stopped, it could receive nothing meanwhile.
  if (now - lastLook_ > silence_ / 2)
    for (OtherNode& other : others_) other.heard = now;
  lastLook_ = now;
  const bool due = now - lastBeat_ > silence_ / 8;
  if (due) lastBeat_ = now;
  for (int n = 0; n < nodes_; ++n) {
    const OtherNode& other = others_[static_cast<std::size_t>(n)];
    if (n == node_) continue;
    // Messages sent before the goodbye may arrive a moment later.
    if (other.ended && now - other.heard > silence_ / 8 && waitsFor(n))
      break_(n, fmt::format("{} has ended its program", nameOf(n)));
    if (other.ended) continue;
    if (due) tell(n, Alive, 0);
    if (now - other.heard <= silence_) continue;
    lose(n);
    break_(n, fmt::format("nothing was heard of {} for {} s: it hangs, was killed, or its network is cut",
                          nameOf(n), std::chrono::duration<double>(silence_).count()));
  }
}

bool NodeLink::waitsFor(int node) const {
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.call && slot.message.node == node && slot.message.way == NodeMessage::Way::Receive;
  });
}

/// Tells the other nodes, for a short time at most: a node that cannot be told detects the silence.
void NodeLink::announceFailure() {
  {
    const Lock lock(mutex_);
    if (problem_.empty()) {
      problem_ = "another thread of this node has failed";
      culprit_ = node_;
    }
  }
  try {
    const auto end = Clock::now() + std::min<std::chrono::milliseconds>(silence_ / 4, 500ms);
    std::vector<char> told(others_.size());
    const auto finished = [&] {
      for (int n = 0; n < nodes_; ++n)
        if (n != node_ && n != culprit_ &&
            (!told[static_cast<std::size_t>(n)] || others_[static_cast<std::size_t>(n)].outTicket >= 0))
          return false;
      return true;
    };
    while (!finished() && Clock::now() < end) {
      for (int n = 0; n < nodes_; ++n) {
        auto& done = told[static_cast<std::size_t>(n)];
        if (n == node_ || n == culprit_ || done || others_[static_cast<std::size_t>(n)].outTicket >= 0)
          continue;
        tell(n, others_[static_cast<std::size_t>(culprit_)].failed ? Heard : Failed, culprit_);
        done = 1;
      }
      try {
        poll();
      } catch (const NodeLost& loss) {  // it cannot be told any more
        if (!others_[static_cast<std::size_t>(loss.node())].failed) lose(loss.node());
        told[static_cast<std::size_t>(loss.node())] = 1;
        others_[static_cast<std::size_t>(loss.node())].outTicket = -1;
      }
      std::this_thread::sleep_for(1ms);
    }
  } catch (...) {  // the network fails, too: the other nodes detect the silence
  }
  transport_->abandon();
}

/// Waits for nodes that are still working, as long as they send heartbeats.
void NodeLink::announceEnd() {
  std::vector<char> told(others_.size());
  for (;;) {
    bool all = true;
    for (int n = 0; n < nodes_; ++n) {
      OtherNode& other = others_[static_cast<std::size_t>(n)];
      if (n == node_) continue;
      if (!told[static_cast<std::size_t>(n)] && other.outTicket < 0) {
        tell(n, Goodbye, 0);
        told[static_cast<std::size_t>(n)] = 1;
      }
      all = all && told[static_cast<std::size_t>(n)] && other.outTicket < 0 && other.ended;
    }
    if (all) return;
    poll();
    beat();
    if (failing_) return;
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace muster
